#include "common/client/serial_runner.h"

#include <utility>

namespace lockstep {

SerialRunner::SerialRunner(std::function<bool()> step)
    : step_(std::move(step)), waker_([this] { Run(); }) {}

void SerialRunner::Run() {
  const Gate::Pass inside = gate_.Enter();
  if (!inside) return;
  {
    absl::MutexLock lock(&mutex_);
    again_ = true;
    if (std::exchange(running_, true)) return;
  }
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!std::exchange(again_, false)) {
        running_ = false;
        return;
      }
    }
    while (step_()) continue;
  }
}

}  // namespace lockstep
