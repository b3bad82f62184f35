#include "worker/device/cuda/call_watchdog.h"

#include <utility>

#include "common/base/check.h"

namespace lockstep::worker::cuda {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);

}  // namespace

CallWatchdog::CallWatchdog(std::function<void(const LateCall&)> on_late)
    : on_late_(std::move(on_late)), thread_([this] { Run(); }) {}

CallWatchdog::~CallWatchdog() {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(call_ == nullptr);
    ends_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

CallWatchdog::Watch::Watch(CallWatchdog* watchdog, const char* name, absl::Duration limit)
    : watchdog_(watchdog) {
  const absl::Duration now = watchdog->clock_.Monotonic();
  absl::MutexLock lock(&watchdog->mutex_);
  watchdog->call_ = name;
  watchdog->limit_ = limit;
  watchdog->deadline_ = now + limit;
}

CallWatchdog::Watch::~Watch() {
  absl::MutexLock lock(&watchdog_->mutex_);
  watchdog_->call_ = nullptr;
}

void CallWatchdog::Run() {
  while (const std::optional<LateCall> late = NextLate()) on_late_(*late);
}

std::optional<CallWatchdog::LateCall> CallWatchdog::NextLate() {
  absl::MutexLock lock(&mutex_);
  while (!changed_.AwaitFor(&mutex_, absl::Condition(&ends_), kLook)) {
    const absl::Duration now = clock_.Monotonic();  // at each look, so that it sees a standstill
    if (call_ == nullptr || now < deadline_) continue;
    return LateCall{std::exchange(call_, nullptr), limit_};
  }
  return std::nullopt;
}

}  // namespace lockstep::worker::cuda
