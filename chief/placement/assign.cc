#include "chief/placement/assign.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace lockstep::chief {

std::vector<ShardIndex> AssignShards(absl::Span<const VariableSize> variables,
                                     uint32_t num_shards) {
  LOCKSTEP_CHECK(num_shards > 0);
  std::vector<int64_t> load(num_shards, 0);
  std::vector<ShardIndex> assigned(variables.size(), ShardIndex(kStepShard));
  std::vector<size_t> free;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].on_step_shard) {
      load[kStepShard] += variables[i].bytes;
    } else {
      free.push_back(i);
    }
  }
  std::stable_sort(free.begin(), free.end(),
                   [&](size_t a, size_t b) { return variables[a].bytes > variables[b].bytes; });
  for (size_t i : free) {
    const auto lightest = std::min_element(load.begin(), load.end());
    *lightest += variables[i].bytes;
    assigned[i] = ShardIndex(static_cast<uint32_t>(lightest - load.begin()));
  }
  return assigned;
}

Balance MeasureBalance(absl::Span<const VariableSize> variables,
                       absl::Span<const ShardIndex> assigned, uint32_t num_shards) {
  LOCKSTEP_CHECK(num_shards > 0 && variables.size() == assigned.size());
  std::vector<int64_t> load(num_shards, 0);
  for (size_t i = 0; i < variables.size(); ++i) load[assigned[i].value()] += variables[i].bytes;
  const int64_t total = std::accumulate(load.begin(), load.end(), int64_t{0});
  return {.max_bytes = *std::max_element(load.begin(), load.end()),
          .mean_bytes = static_cast<double>(total) / num_shards};
}

}  // namespace lockstep::chief
