// What a member of a group has at a version, as bytes: for one that comes in the place of a lost
// member. proto/peer.proto says in which order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "common/base/ids.h"

namespace lockstep::worker {

struct StatePiece {
  uint64_t total = 0;          // bytes of the whole state
  std::vector<float> scalars;  // of the optimizer
  std::string bytes;
};

// What this worker has.
class OwnState {
 public:
  virtual ~OwnState() = default;
  // At most `size` bytes from `offset` on. UNAVAILABLE: it does not have this version, or not yet.
  // Thread-safe.
  virtual absl::StatusOr<StatePiece> Read(GlobalStep version, uint64_t offset, uint64_t size) = 0;
};

// What the other members of one view of a group have.
class MemberStates {
 public:
  virtual ~MemberStates() = default;
  // As OwnState::Read, of the member at this position, which is not this worker. ABORTED: the group
  // has a newer view. FAILED_PRECONDITION: the member has not heard of this view yet. Thread-safe.
  virtual void ReadState(int position, GlobalStep version, uint64_t offset, uint64_t size,
                         Callback<StatePiece> done) = 0;
};

}  // namespace lockstep::worker
