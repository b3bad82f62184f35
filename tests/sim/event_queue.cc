#include "tests/sim/event_queue.h"

namespace lockstep::sim {

void EventQueue::Plan(absl::Duration delay, EventKind kind, const Link& ends,
                      absl::AnyInvocable<void()> event) {
  events_.emplace(std::make_pair(now_ + delay, planned_++), Event{kind, ends, std::move(event)});
}

bool EventQueue::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  const absl::Duration end = now_ + limit;
  while (!done()) {
    if (events_.empty() || events_.begin()->first.first > end) return false;
    auto next = events_.extract(events_.begin());
    now_ = next.key().first;
    Event& event = next.mapped();
    trace_.NoteEvent(now_, event.kind, event.ends);
    event.happen();
  }
  return true;
}

}  // namespace lockstep::sim
