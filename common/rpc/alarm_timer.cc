#include "common/rpc/alarm_timer.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/rpc/queue_event.h"

namespace lockstep::rpc {

// One callback to come. Destroys itself after it.
class AlarmTimer::Pending final : public QueueEvent {
 public:
  Pending(AlarmTimer* timer, absl::AnyInvocable<void()> callback)
      : timer_(timer), callback_(std::move(callback)) {}

  void Arm(absl::Duration delay) {
    const gpr_timespec wait =
        gpr_time_from_micros(std::max<int64_t>(0, absl::ToInt64Microseconds(delay)), GPR_TIMESPAN);
    alarm_.Set(timer_->queue_->queue(), gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait),
               static_cast<QueueEvent*>(this));
  }
  void Cancel() { alarm_.Cancel(); }

  void OnEvent(bool ok) override {
    const std::unique_ptr<Pending> self(this);
    const bool is_closing = timer_->IsClosing();
    if (ok && !is_closing) callback_();
    callback_ = nullptr;
    absl::MutexLock lock(&timer_->mutex_);
    timer_->pending_.erase(this);
  }

 private:
  AlarmTimer* const timer_;
  absl::AnyInvocable<void()> callback_;
  grpc::Alarm alarm_;
};

// The lock also orders what made a callback before its call, visibly to ThreadSanitizer.
bool AlarmTimer::IsClosing() {
  absl::MutexLock lock(&mutex_);
  return is_closing_;
}

AlarmTimer::~AlarmTimer() {
  absl::MutexLock lock(&mutex_);
  is_closing_ = true;
  for (Pending* pending : pending_) pending->Cancel();
  mutex_.Await(absl::Condition(
      +[](absl::flat_hash_set<Pending*>* pending) { return pending->empty(); }, &pending_));
}

void AlarmTimer::After(absl::Duration delay, absl::AnyInvocable<void()> callback) {
  auto pending = std::make_unique<Pending>(this, std::move(callback));
  absl::MutexLock lock(&mutex_);
  if (is_closing_) return;
  pending->Arm(delay);
  pending_.insert(pending.release());
}

}  // namespace lockstep::rpc
