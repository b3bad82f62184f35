#include "chief/placement/assign.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace lockstep::chief {
namespace {

std::vector<uint32_t> Shards(const std::vector<VariableSize>& variables, uint32_t num_shards) {
  std::vector<uint32_t> shards;
  for (ShardIndex shard : AssignShards(variables, num_shards)) shards.push_back(shard.value());
  return shards;
}

// The fullest shard of the best placement there is, by trying all.
int64_t BestMaximum(const std::vector<VariableSize>& variables, uint32_t num_shards) {
  std::vector<ShardIndex> assigned(variables.size(), ShardIndex(0));
  int64_t best = MeasureBalance(variables, assigned, num_shards).max_bytes;
  while (true) {
    size_t i = 0;
    while (i < assigned.size() && assigned[i].value() + 1 == num_shards) {
      assigned[i++] = ShardIndex(0);
    }
    if (i == assigned.size()) return best;
    assigned[i] = assigned[i].next();
    best = std::min(best, MeasureBalance(variables, assigned, num_shards).max_bytes);
  }
}

TEST_CASE("the largest variable goes first, each to the least loaded shard") {
  CHECK(Shards({{10}, {100}, {60}, {50}}, 2) == std::vector<uint32_t>{0, 0, 1, 1});
}

TEST_CASE("ties go to the earlier variable and the lowest shard") {
  CHECK(Shards({{8}, {8}, {8}, {8}}, 3) == std::vector<uint32_t>{0, 1, 2, 0});
  CHECK(Shards({{0}, {0}}, 2) == std::vector<uint32_t>{0, 0});
}

TEST_CASE("a variable bound to the step shard stays there and its bytes count") {
  CHECK(Shards({{50}, {40}, {4, true}}, 2) == std::vector<uint32_t>{1, 0, 0});
  CHECK(Shards({{50}, {100, true}, {49}}, 2) == std::vector<uint32_t>{1, 0, 1});
}

TEST_CASE("there may be no variables, one shard, or more shards than variables") {
  CHECK(Shards({}, 4).empty());
  CHECK(Shards({{1}, {2}}, 1) == std::vector<uint32_t>{0, 0});
  CHECK(Shards({{1}, {2}}, 5) == std::vector<uint32_t>{1, 0});
  CHECK(MeasureBalance({}, {}, 3).max_bytes == 0);
}

TEST_CASE("the balance is that of the fullest shard and of the mean") {
  const std::vector<VariableSize> variables = {{30}, {10}, {20}};
  const Balance balance = MeasureBalance(variables, AssignShards(variables, 2), 2);
  CHECK(balance.max_bytes == 30);
  CHECK(balance.mean_bytes == 30);
}

TEST_CASE("no placement is more than 4/3 of the best one") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const uint32_t num_shards = 2 + random() % 2;
    std::vector<VariableSize> variables(1 + random() % 7);
    for (VariableSize& variable : variables) variable.bytes = 4 * (random() % 100);
    const int64_t got =
        MeasureBalance(variables, AssignShards(variables, num_shards), num_shards).max_bytes;
    CAPTURE(round, num_shards, variables.size());
    CHECK(got * 3 <= BestMaximum(variables, num_shards) * 4);
  }
}

TEST_CASE("the fullest shard exceeds the mean by less than the largest variable") {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    const uint32_t num_shards = 1 + random() % 16;
    std::vector<VariableSize> variables(1 + random() % 60);
    int64_t largest = 0;
    for (VariableSize& variable : variables) {
      variable.bytes = 4 * (1 + random() % 100000);
      largest = std::max(largest, variable.bytes);
    }
    const Balance balance =
        MeasureBalance(variables, AssignShards(variables, num_shards), num_shards);
    CAPTURE(round, num_shards, variables.size());
    CHECK(balance.max_bytes < balance.mean_bytes + largest + 1);
  }
}

}  // namespace
}  // namespace lockstep::chief
