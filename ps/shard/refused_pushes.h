// RefusedPushes chooses the partial gradients that make room for a push for which there was none. A
// worker that has stopped, or whose link is slow, may hold memory that a backup needs to close the
// step.
//
// A partial gradient is given up of which less than a sixteenth came during four tries of the
// refused push, and 300 ms: the least complete one that makes enough room, or several where only
// together they do. A worker backs off before each try, but not after an answer to another
// message. A worker whose gradient was given up makes nobody else's give way in that step, and does
// so only once itself: two slow workers do not take turns for ever.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "ps/ledger/push_ledger.h"
#include "ps/shard/reassembly_buffer.h"

namespace lockstep::ps {

// Not thread-safe.
class RefusedPushes {
 public:
  // Notes that a message was refused for want of room. It has the variable's bytes from `offset`
  // on; `partial` are the variable's gradients that are coming in. Returns those to give up:
  // nothing writes them, and `makes_room` is true of them. `now` is of a monotonic clock.
  std::vector<const PartialGradient*> OnRefused(
      const PushKey& key, GlobalStep local_step, size_t variable, uint64_t offset,
      absl::Span<const PartialGradient* const> partial, absl::Duration now,
      absl::FunctionRef<bool(absl::Span<const PartialGradient* const>)> makes_room);

 private:
  // The push that a pusher tries again.
  struct Waiting {
    PushKey key;
    size_t variable = 0;
    uint64_t offset = 0;
    int tries = 0;
    absl::Duration since;                            // the first of them
    absl::flat_hash_map<Pusher, uint64_t> received;  // of the partial gradients, when they began
  };

  bool WasGivenUp(const Pusher& pusher, size_t variable, GlobalStep step) const;

  absl::flat_hash_map<Pusher, Waiting> waiting_;
  // The step in which a gradient of the variable was given up last.
  absl::flat_hash_map<std::pair<Pusher, size_t>, GlobalStep> given_up_;
};

}  // namespace lockstep::ps
