// What the order of a worker's calls says about its process.
#include <utility>

#include "chief/service/worker_calls.h"

namespace lockstep::chief {

// A worker makes one call at a time: a call that follows an answer was sent after that answer.
std::optional<absl::Duration> WorkerCalls::TakeAnswered(WorkerIndex worker,
                                                        Incarnation incarnation) {
  const auto contact = contacts_.find(worker);
  const bool is_known = contact != contacts_.end() && contact->second.incarnation == incarnation;
  return is_known ? std::exchange(contact->second.answered, std::nullopt) : std::nullopt;
}

}  // namespace lockstep::chief
