// Which shard hosts which variable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"

namespace lockstep::chief {

enum class PlacementRule {
  // The largest variable first, each to the shard with the fewest bytes so far; of equal variables
  // the earlier one first.
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
  std::optional<ShardIndex> shard = std::nullopt;  // that it is on, whatever the rule
};

// One shard per variable, in their order. Of equal shards the lowest. What is given counts as load
// before anything is assigned by bytes, and in its turn where the order is that of the variables.
// At least one shard; those that are given exist (CHECK).
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
