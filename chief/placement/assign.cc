#include "chief/placement/assign.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace lockstep::chief {

namespace {

// What each shard has so far, in the unit of the rule.
class Loads {
 public:
  explicit Loads(uint32_t num_shards) : loads_(num_shards, 0) {}

  void Add(ShardIndex shard, int64_t load) {
    LOCKSTEP_CHECK(shard.value() < loads_.size());
    loads_[shard.value()] += load;
  }
  ShardIndex AddToLightest(int64_t load) {
    const auto lightest = std::min_element(loads_.begin(), loads_.end());
    *lightest += load;
    return ShardIndex(static_cast<uint32_t>(lightest - loads_.begin()));
  }

 private:
  std::vector<int64_t> loads_;
};

std::vector<ShardIndex> AssignBalanced(absl::Span<const VariableSize> variables,
                                       uint32_t num_shards) {
  Loads bytes(num_shards);
  std::vector<ShardIndex> assigned(variables.size());
  std::vector<size_t> free;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].shard.has_value()) {
      assigned[i] = *variables[i].shard;
      bytes.Add(assigned[i], variables[i].bytes);
    } else {
      free.push_back(i);
    }
  }
  std::stable_sort(free.begin(), free.end(),
                   [&](size_t a, size_t b) { return variables[a].bytes > variables[b].bytes; });
  for (const size_t i : free) assigned[i] = bytes.AddToLightest(variables[i].bytes);
  return assigned;
}

std::vector<ShardIndex> AssignLeastLoaded(absl::Span<const VariableSize> variables,
                                          uint32_t num_shards) {
  Loads elements(num_shards);
  std::vector<ShardIndex> assigned;
  for (const VariableSize& variable : variables) {
    if (variable.shard.has_value()) elements.Add(*variable.shard, variable.elements);
    assigned.push_back(variable.shard.has_value() ? *variable.shard
                                                  : elements.AddToLightest(variable.elements));
  }
  return assigned;
}

std::vector<ShardIndex> AssignInTurn(absl::Span<const VariableSize> variables,
                                     uint32_t num_shards) {
  std::vector<ShardIndex> assigned;
  uint32_t next = 0;
  for (const VariableSize& variable : variables) {
    LOCKSTEP_CHECK(!variable.shard.has_value() || variable.shard->value() < num_shards);
    assigned.push_back(variable.shard.has_value() ? *variable.shard
                                                  : ShardIndex(next++ % num_shards));
  }
  return assigned;
}

}  // namespace

std::vector<ShardIndex> AssignShards(absl::Span<const VariableSize> variables, uint32_t num_shards,
                                     PlacementRule rule) {
  LOCKSTEP_CHECK(num_shards > 0);
  switch (rule) {
    case PlacementRule::kLeastLoaded:
      return AssignLeastLoaded(variables, num_shards);
    case PlacementRule::kRoundRobin:
      return AssignInTurn(variables, num_shards);
    case PlacementRule::kBalanced:
      break;
  }
  return AssignBalanced(variables, num_shards);
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
