#include "worker/collective/cross_tower_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

absl::Status CheckAggregation(Aggregation aggregation) {
  if (aggregation == Aggregation::kSum || aggregation == Aggregation::kMean) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("`aggregation` must be SUM or MEAN, got ",
                                                 static_cast<int>(aggregation),
                                                 ". Remedy: choose one of them"));
}

absl::Status CheckPair(const PerDevice& value, const Destinations& destinations) {
  LOCKSTEP_RETURN_IF_ERROR(CheckValues(value));
  return CheckDestinations(destinations);
}

}  // namespace

absl::StatusOr<Mirrored> CrossTowerOps::Reduce(Aggregation aggregation, const PerDevice& value,
                                               const Destinations& destinations) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAggregation(aggregation));
  LOCKSTEP_RETURN_IF_ERROR(CheckPair(value, destinations));
  return ReduceChecked(aggregation, value, destinations);
}

absl::StatusOr<std::vector<Mirrored>> CrossTowerOps::BatchReduce(
    Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAggregation(aggregation));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const absl::Status status = CheckPair(pairs[i].value, pairs[i].destinations);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat("`value_destination_pairs`, element ", i, ": ",
                                                    status.message()));
  }
  if (pairs.empty()) return std::vector<Mirrored>();
  return BatchReduceChecked(aggregation, pairs);
}

absl::StatusOr<Mirrored> CrossTowerOps::Broadcast(const Value& value,
                                                  const Destinations& destinations) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckDestinations(destinations));
  Mirrored mirrored;
  for (const DeviceId& device : destinations.devices) {
    mirrored.copies.push_back({device, CloneOf(value)});
  }
  return mirrored;
}

std::vector<std::string> CrossTowerOps::TakeWarnings() { return std::exchange(warnings_, {}); }

absl::StatusOr<std::vector<Mirrored>> CrossTowerOps::ReduceEach(
    Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) {
  std::vector<Mirrored> results;
  for (const ValueDestinationPair& pair : pairs) {
    LOCKSTEP_ASSIGN_OR_RETURN(Mirrored result,
                              ReduceChecked(aggregation, pair.value, pair.destinations));
    results.push_back(std::move(result));
  }
  return results;
}

void CrossTowerOps::Warn(const std::string& warning) {
  if (++given_[warning] <= kMostWarnings) warnings_.push_back(warning);
}

bool AllDevicesMatch(absl::Span<const ValueDestinationPair> pairs) {
  return std::ranges::all_of(pairs, [&](const ValueDestinationPair& pair) {
    return AreSameSets(pair.value.devices(), pair.destinations.devices) &&
           AreSameSets(pair.value.devices(), pairs[0].value.devices());
  });
}

}  // namespace lockstep::worker
