#include "tests/sim/event_queue.h"

namespace lockstep::sim {

EventQueue::Key EventQueue::Plan(absl::Duration delay, EventKind kind, const Link& ends,
                                 absl::AnyInvocable<void()> event) {
  const Key key(now_ + delay, planned_++);
  events_.emplace(key, Event{kind, ends, std::move(event)});
  return key;
}

void EventQueue::Continue(const Node& node) {
  auto stopped = stopped_.extract(node);
  if (stopped.empty()) return;
  for (Event& event : stopped.mapped()) {
    events_.emplace(Key(now_, planned_++), std::move(event));
  }
}

bool EventQueue::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  const absl::Duration end = now_ + limit;
  while (!done()) {
    if (!trace_.violation().empty()) return false;
    if (events_.empty() || events_.begin()->first.first > end) return false;
    auto next = events_.extract(events_.begin());
    now_ = next.key().first;
    Event& event = next.mapped();
    if (const auto stopped = stopped_.find(event.ends.to); stopped != stopped_.end()) {
      stopped->second.push_back(std::move(event));
      continue;
    }
    trace_.NoteEvent(now_, event.kind, event.ends);
    event.happen();
    if (after_each_ != nullptr) after_each_();
  }
  return true;
}

}  // namespace lockstep::sim
