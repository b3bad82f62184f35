// Which shard hosts which variable: balanced by bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"

namespace lockstep::chief {

struct VariableSize {
  int64_t bytes = 0;
  bool on_step_shard = false;  // shard 0 whatever its load
};

// One shard per variable, in their order. The largest variable first, each to the shard with the
// fewest bytes so far; of equal variables the earlier one first, of equal shards the lowest. At
// least one shard.
std::vector<ShardIndex> AssignShards(absl::Span<const VariableSize> variables, uint32_t num_shards);

struct Balance {
  int64_t max_bytes = 0;  // of the fullest shard
  double mean_bytes = 0;
};

// `assigned` comes from AssignShards with the same arguments.
Balance MeasureBalance(absl::Span<const VariableSize> variables,
                       absl::Span<const ShardIndex> assigned, uint32_t num_shards);

}  // namespace lockstep::chief
