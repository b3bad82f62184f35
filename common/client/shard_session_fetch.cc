// What a session fetches.
#include <utility>

#include "common/base/check.h"
#include "common/client/shard_session.h"
#include "common/transport/ps_methods.h"

namespace lockstep {

void ShardSession::SetTargets(std::vector<FetchTarget> targets) {
  absl::MutexLock lock(&mutex_);
  values_.SetTargets(std::move(targets));
}

void ShardSession::SetTarget(size_t target, MutableTensorView value,
                             std::optional<std::span<const int64_t>> rows) {
  absl::MutexLock lock(&mutex_);
  values_.SetTarget(target, std::move(value), rows);
}

void ShardSession::Fetch(GlobalStep version, FetchKind kind, Callback<GlobalStep> done) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!fetched_);
    fetched_ = std::move(done);
    values_.Begin(version, kind);
    if (loop_.is_cancelled) values_.Cancel();
  }
  Flush();
}

const void* ShardSession::Value(size_t target) const {
  absl::MutexLock lock(&mutex_);
  return values_.Value(target);
}

std::vector<float> ShardSession::Scalars() const {
  absl::MutexLock lock(&mutex_);
  return {values_.scalars().begin(), values_.scalars().end()};
}

bool ShardSession::TellFetched() {
  Callback<GlobalStep> done;
  std::optional<absl::StatusOr<GlobalStep>> result;
  {
    absl::MutexLock lock(&mutex_);
    result = values_.TakeResult();
    if (!result.has_value()) return false;
    done = std::exchange(fetched_, nullptr);
  }
  done(*std::move(result));
  return true;
}

// Nobody else touches the targets of a request in flight.
void ShardSession::OnFetched(const FetchCall& fetch, absl::StatusOr<FetchedValues::Reply> reply)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const absl::Status copied = reply.ok() ? values_.CopyToTargets(fetch, *reply) : absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  values_.OnReply(fetch, std::move(reply), copied, clock_->Monotonic());
}

bool ShardSession::SendFetch() {
  Gate::Pass pass = gate_->Enter();
  if (!pass) return false;
  std::shared_ptr<Call> call;
  {
    absl::MutexLock lock(&mutex_);
    if (fusing_.HoldsFetches()) return false;
    std::optional<FetchCall> fetch = values_.Next(clock_->Monotonic());
    if (!fetch.has_value()) return false;
    call = std::make_shared<Call>(Call{.pass = std::move(pass), .fetch = std::move(fetch)});
  }
  OpenTransport();
  transport_->Call(kPull, call->fetch->request, {}, call->fetch->accepts_references,
                   [this, call](absl::StatusOr<FetchedValues::Reply> reply) {
                     OnFetched(*call->fetch, std::move(reply));
                     Flush();
                   });
  return true;
}

}  // namespace lockstep
