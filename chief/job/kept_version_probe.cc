#include "chief/job/kept_version_probe.h"

#include <utility>

namespace lockstep::chief {

KeptVersionProbe::KeptVersionProbe(
    std::vector<PsControl*> shards, Executor* executor, const Clock* clock,
    std::function<void(GlobalStep, size_t, const SetViewReply&)> on_view)
    : shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_view_(std::move(on_view)),
      asked_(shards_.size()) {}

void KeptVersionProbe::Update(std::optional<GlobalStep> version,
                              const std::vector<ShardPlace>& places) {
  if (std::exchange(version_, version) != version) asked_.assign(shards_.size(), {});
  if (!version.has_value()) return;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    Asked& asked = asked_[shard];
    if (asked.address != places[shard].address()) asked = {.address = places[shard].address()};
    const bool is_due = asked.call == 0 || asked.retry.IsDue(clock_->Monotonic());
    if (!asked.is_done && is_due) Ask(shard);
  }
}

void KeptVersionProbe::Ask(size_t shard) {
  const uint64_t call = ++last_call_;
  asked_[shard].call = call;
  asked_[shard].retry.Sent();
  shards_[shard]->Call(
      kGetView, GetViewRequest(),
      On<SetViewReply>(executor_, [=, this](const absl::StatusOr<SetViewReply>& view) {
        OnAnswer(shard, call, view);
      }));
}

void KeptVersionProbe::OnAnswer(size_t shard, uint64_t call,
                                const absl::StatusOr<SetViewReply>& view) {
  Asked& asked = asked_[shard];
  if (asked.call != call) return;
  if (IsTransient(view.status())) return asked.retry.Failed(view.status(), clock_->Monotonic());
  // Another error ends the job where its steps meet it.
  asked.is_done = true;
  if (view.ok()) on_view_(*version_, shard, *view);
}

}  // namespace lockstep::chief
