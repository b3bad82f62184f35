#include "ps/accumulator/take_queue.h"

#include <algorithm>

namespace lockstep::ps {

std::optional<TakeId> TakeQueue::PopSatisfied(int accumulated) {
  if (waiting_.empty() || accumulated < waiting_.front().required) return std::nullopt;
  const TakeId id = waiting_.front().id;
  waiting_.pop_front();
  return id;
}

bool TakeQueue::Remove(TakeId id) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [id](const Waiting& take) { return take.id == id; });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

}  // namespace lockstep::ps
