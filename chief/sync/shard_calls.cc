#include "chief/sync/shard_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {

ShardCalls::ShardCalls(std::vector<std::string> shard_names, const Clock* clock, Call call,
                       StatusCallback done)
    : shard_names_(std::move(shard_names)),
      clock_(clock),
      call_(std::move(call)),
      done_(std::move(done)),
      shards_(shard_names_.size()),
      open_(shard_names_.size()) {}

void ShardCalls::Start() {
  for (size_t shard = 0; shard < shards_.size(); ++shard) Send(shard);
}

void ShardCalls::Tick() {
  for (size_t shard = 0; shard < shards_.size() && !ended_; ++shard) {
    if (shards_[shard].retry.IsDue(clock_->Monotonic())) Send(shard);
  }
}

void ShardCalls::RepeatNow() {
  for (size_t shard = 0; shard < shards_.size() && !ended_; ++shard) {
    if (shards_[shard].retry.is_pausing()) Send(shard);
  }
}

void ShardCalls::Send(size_t shard) {
  shards_[shard].retry.Sent();
  call_(shard, [this, shard](absl::Status status) { OnAnswer(shard, std::move(status)); });
}

void ShardCalls::OnAnswer(size_t shard, absl::Status status) {
  Shard& state = shards_[shard];
  if (ended_ || state.answered) return;
  if (status.ok()) {
    state.answered = true;
    state.retry.Succeeded();
    state.problem = absl::OkStatus();
    if (--open_ == 0) End(absl::OkStatus());
  } else if (IsTransient(status)) {
    state.retry.Failed(status, clock_->Monotonic());
    state.problem = std::move(status);
  } else {
    End(std::move(status));
  }
}

void ShardCalls::End(absl::Status status) {
  ended_ = true;
  done_(std::move(status));
}

absl::Status ShardCalls::Problem(size_t shard) const {
  const Shard& state = shards_[shard];
  if (state.answered || !state.problem.ok()) return state.problem;
  return absl::UnavailableError(absl::StrCat(shard_names_[shard], " has not answered yet"));
}

std::string ShardCalls::DescribeWaiting() const {
  std::vector<std::string> parts;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    if (absl::Status problem = Problem(shard); !problem.ok()) {
      parts.emplace_back(problem.message());
    }
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace lockstep::chief
