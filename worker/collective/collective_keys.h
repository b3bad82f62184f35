// CollectiveKey identifies a collective by its group and its number within the group. Every process
// of the group must issue the same collectives in the same order. A message of another collective
// is an error, so that a mismatch does not hang.
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

// Used by one thread at a time. Make one for each view of the group: a new view starts again at 0.
class CollectiveKeys {
 public:
  // Returns the same id for the same set of devices in every process; never 0.
  static uint64_t GroupOf(absl::Span<const DeviceId> devices);
  // Returns the group and the number of earlier calls for it.
  CollectiveKey Next(absl::Span<const DeviceId> devices);

 private:
  std::map<uint64_t, int64_t> issued_;
};

// The fields by which each message of a collective describes it. The receiver compares them.
struct CollectiveCall {
  CollectiveKey key;
  ReductionAlgorithm algorithm = ReductionAlgorithm::kCollective;
  int64_t length = 0;  // elements of the vector

  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

// "group 12, instance 3, collective over 100 elements".
std::string ToString(const CollectiveCall& call);
// INVALID_ARGUMENT naming both if they differ. `peer` is the sender of `theirs`.
absl::Status CheckSameCall(const CollectiveCall& own, const CollectiveCall& theirs,
                           const std::string& peer);

}  // namespace lockstep::worker
