// Who a collective is: its group and its number within the group. Every process of the group must
// issue the same collectives in the same order; a message of another one is an error, not a wait
// that never ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/reduction/algorithm.h"
#include "worker/collective/device_values.h"

namespace lockstep::worker {

struct CollectiveKey {
  uint64_t group = 0;
  int64_t instance = 0;

  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
};

// Used by one thread at a time. One for each view of the group: a new view starts again from 0.
class CollectiveKeys {
 public:
  // The same for the same set of devices, in every process; not 0.
  static uint64_t GroupOf(absl::Span<const DeviceId> devices);
  // The group, and the number of calls for it before.
  CollectiveKey Next(absl::Span<const DeviceId> devices);

 private:
  std::map<uint64_t, int64_t> issued_;
};

// What the messages of a collective say, so that the other end can compare.
struct CollectiveCall {
  CollectiveKey key;
  ReductionAlgorithm algorithm = ReductionAlgorithm::kCollective;
  int64_t length = 0;  // elements of the vector

  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

// "group 12, instance 3, collective over 100 elements".
std::string ToString(const CollectiveCall& call);
// INVALID_ARGUMENT naming both where they differ. `peer`: who sent `theirs`.
absl::Status CheckSameCall(const CollectiveCall& own, const CollectiveCall& theirs,
                           const std::string& peer);

}  // namespace lockstep::worker
