// A timer on a thread of its own.
#pragma once

#include <utility>

#include "common/rpc/alarm_timer.h"
#include "common/rpc/event_queue.h"

namespace lockstep {

class ThreadTimer final : public Timer {
 public:
  void After(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    timer_.After(delay, std::move(callback));
  }

 private:
  rpc::EventQueue queue_;
  rpc::AlarmTimer timer_{&queue_};
};

}  // namespace lockstep
