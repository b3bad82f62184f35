#include "worker/collective/schedule.h"

namespace lockstep::worker {

Traffic Schedule::SentBy(int rank) const {
  Traffic traffic;
  for (const Operation& operation : operations(rank)) {
    if (operation.kind != Operation::Kind::kSend) continue;
    ++traffic.messages;
    traffic.elements += static_cast<int64_t>(operation.range.count);
  }
  return traffic;
}

Traffic Schedule::Total() const {
  Traffic total;
  for (int rank = 0; rank < num_participants(); ++rank) {
    const Traffic traffic = SentBy(rank);
    total.messages += traffic.messages;
    total.elements += traffic.elements;
  }
  return total;
}

}  // namespace lockstep::worker
