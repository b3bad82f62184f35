// Interfaces to read the state of a group member at a version, as bytes. The replacement of a lost
// member reads it. proto/peer.proto defines the order of the bytes.
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

// The state of this worker.
class OwnState {
 public:
  virtual ~OwnState() = default;
  // Reads at most `size` bytes from `offset` on. UNAVAILABLE: this worker does not have the
  // version, or not yet. Thread-safe.
  virtual absl::StatusOr<StatePiece> Read(GlobalStep version, uint64_t offset, uint64_t size) = 0;
};

// The states of the other members in one view of a group.
class MemberStates {
 public:
  virtual ~MemberStates() = default;
  // As OwnState::Read, of the member at this position, which is not this worker. ABORTED: the group
  // has a newer view. FAILED_PRECONDITION: the member has not heard of this view yet. Thread-safe.
  virtual void ReadState(int position, GlobalStep version, uint64_t offset, uint64_t size,
                         Callback<StatePiece> done) = 0;
};

}  // namespace lockstep::worker
