// Assigns each variable to the shard that hosts it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"

namespace lockstep::chief {

enum class PlacementRule {
  // The largest variable first, each to the shard with the fewest bytes so far; among equal
  // variables the earlier one first.
  kBalanced,
  // In their order, each to the shard with the fewest elements so far: tensorpack's
  // LeastLoadedDeviceSetter.
  kLeastLoaded,
  // In their order, one shard after the other: TensorFlow's replica_device_setter. Variables whose
  // shard is given are not counted.
  kRoundRobin,
};

struct VariableSize {
  int64_t bytes = 0;
  int64_t elements = 0;
  std::optional<ShardIndex> shard = std::nullopt;  // given; overrides the rule
};

// Returns one shard per variable, in their order; among equal shards the lowest. Variables with a
// given shard count as load: under kBalanced before the others are assigned, else in their turn.
// `num_shards` is at least 1; given shards exist (CHECK).
std::vector<ShardIndex> AssignShards(absl::Span<const VariableSize> variables, uint32_t num_shards,
                                     PlacementRule rule);

struct Balance {
  int64_t max_bytes = 0;  // of the fullest shard
  double mean_bytes = 0;
};

// `assigned` has a shard below `num_shards` for each variable.
Balance MeasureBalance(absl::Span<const VariableSize> variables,
                       absl::Span<const ShardIndex> assigned, uint32_t num_shards);

}  // namespace lockstep::chief
