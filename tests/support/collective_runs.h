// Two ways to carry out a schedule beside RunInMemory: in one thread with messages that arrive in
// any order and in parts, and with a thread for each participant.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "worker/collective/schedule.h"

namespace lockstep::test {

struct CollectiveRun {
  bool has_ended = false;             // false: every participant waits and nothing is under way
  std::vector<worker::Traffic> sent;  // by rank
};

// Who goes on, which message arrives next, into how many parts it is cut and when a sender may
// write again is drawn from the seed. `copies`: a message is copied when it is sent, as a socket
// does; otherwise it is read where it lies.
CollectiveRun RunInSeededOrder(const worker::Schedule& schedule,
                               absl::Span<const MutableTensorView> vectors, int divisor,
                               uint64_t seed, bool copies);

// By reference, between threads.
CollectiveRun RunInThreads(const worker::Schedule& schedule,
                           absl::Span<const MutableTensorView> vectors, int divisor);

}  // namespace lockstep::test
