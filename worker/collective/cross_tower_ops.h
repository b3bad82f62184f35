// Cross-tower ops: one value per device becomes their sum or mean on any destinations. The towers
// of one process, on the host: messages are pointers. Across processes the same plans are carried
// out vector by vector: AllReduce and MultiWorkerAllReduce say by Plan (batch_plan.h) which vectors
// there are and each one's schedule.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/collective/device_values.h"

namespace lockstep::worker {

enum class Aggregation { kSum, kMean };

struct ValueDestinationPair {
  PerDevice value;
  Destinations destinations;
};

// Used by one thread at a time.
class CrossTowerOps {
 public:
  // How often one warning is given.
  static constexpr int kMostWarnings = 10;

  virtual ~CrossTowerOps() = default;

  // Results are in the order of the destinations. INVALID_ARGUMENT as CheckValues and
  // CheckDestinations; `aggregation` is neither SUM nor MEAN; what an implementation refuses.
  absl::StatusOr<Mirrored> Reduce(Aggregation aggregation, const PerDevice& value,
                                  const Destinations& destinations);
  // Results are in the order of the pairs. Errors name the pair, counted from 0.
  absl::StatusOr<std::vector<Mirrored>> BatchReduce(Aggregation aggregation,
                                                    absl::Span<const ValueDestinationPair> pairs);
  // A copy of the value for each destination.
  absl::StatusOr<Mirrored> Broadcast(const Value& value, const Destinations& destinations) const;

  // What an operator should know, since the last call, in order.
  std::vector<std::string> TakeWarnings();

 protected:
  // Arguments have been checked.
  virtual absl::StatusOr<Mirrored> ReduceChecked(Aggregation aggregation, const PerDevice& value,
                                                 const Destinations& destinations) = 0;
  virtual absl::StatusOr<std::vector<Mirrored>> BatchReduceChecked(
      Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) = 0;

  // One at a time, by ReduceChecked.
  absl::StatusOr<std::vector<Mirrored>> ReduceEach(Aggregation aggregation,
                                                   absl::Span<const ValueDestinationPair> pairs);
  void Warn(const std::string& warning);

 private:
  std::map<std::string, int> given_;
  std::vector<std::string> warnings_;
};

// Every pair has the same set of devices as source and as destination, and all have that set.
bool AllDevicesMatch(absl::Span<const ValueDestinationPair> pairs);

}  // namespace lockstep::worker
