#include "tests/reference/take_queue.h"

#include <algorithm>

namespace lockstep::reference {

bool TakeQueue::Remove(TakeId id) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [id](const Take& take) { return take.id == id; });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

}  // namespace lockstep::reference
