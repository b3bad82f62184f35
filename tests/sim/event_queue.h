// Simulated time: events in the order of their time, on one thread. The same events in, the same
// order out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "tests/sim/trace.h"

namespace lockstep::sim {

class EventQueue final : public Clock, public Timer {
 public:
  // Of an event that is planned.
  using Key = std::pair<absl::Duration, uint64_t>;

  absl::Duration Monotonic() const override { return now_; }
  absl::Time Wall() const override { return absl::UnixEpoch() + now_ + wall_offset_; }
  // Somebody sets the clock.
  void SetWallBy(absl::Duration offset) {
    trace_.NoteFault(Fault::kClockSet);
    wall_offset_ += offset;
  }

  // Events of the same time happen in the order in which they were planned.
  void After(absl::Duration delay, absl::AnyInvocable<void()> event) override {
    Plan(delay, EventKind::kTimer, Link(), std::move(event));
  }
  // `kind` and `ends` are for the trace.
  Key Plan(absl::Duration delay, EventKind kind, const Link& ends,
           absl::AnyInvocable<void()> event);
  // Does nothing to an event that has happened.
  void Cancel(const Key& key) { events_.erase(key); }

  // SIGSTOP of the process at `node`: events whose second end it is wait for Continue from the
  // moment at which they are due.
  void Stop(const Node& node) { stopped_.try_emplace(node); }
  // SIGCONT: those that wait happen now, in their order. Does nothing to one that is not stopped.
  void Continue(const Node& node);

  // Lets events happen until `done` holds. False: nothing is left to happen, `limit` (simulated) is
  // over, or the trace has a violation.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit);

  // Is called after each event; null: nothing is.
  void AfterEach(std::function<void()> check) { after_each_ = std::move(check); }

  // Of the events that happened.
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

 private:
  struct Event {
    EventKind kind = EventKind::kTimer;
    Link ends;
    absl::AnyInvocable<void()> happen;
  };

  absl::Duration now_ = absl::ZeroDuration();
  absl::Duration wall_offset_ = absl::ZeroDuration();
  Trace trace_;
  std::function<void()> after_each_;
  uint64_t planned_ = 0;
  std::map<Key, Event> events_;
  std::map<Node, std::vector<Event>> stopped_;  // what waits there
};

// Of a process, which may be stopped.
class NodeTimer final : public Timer {
 public:
  // `events` outlives it.
  NodeTimer(const Node& node, EventQueue* events) : node_(node), events_(events) {}
  void After(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    events_->Plan(delay, EventKind::kTimer, {node_, node_}, std::move(callback));
  }

 private:
  const Node node_;
  EventQueue* const events_;
};

}  // namespace lockstep::sim
