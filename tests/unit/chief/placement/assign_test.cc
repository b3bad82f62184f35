#include "chief/placement/assign.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace lockstep::chief {
namespace {

constexpr PlacementRule kBalanced = PlacementRule::kBalanced;
constexpr PlacementRule kLeastLoaded = PlacementRule::kLeastLoaded;
constexpr PlacementRule kRoundRobin = PlacementRule::kRoundRobin;

std::vector<uint32_t> Shards(const std::vector<VariableSize>& variables, uint32_t num_shards,
                             PlacementRule rule = kBalanced) {
  std::vector<uint32_t> shards;
  for (ShardIndex shard : AssignShards(variables, num_shards, rule)) {
    shards.push_back(shard.value());
  }
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

VariableSize On(uint32_t shard, int64_t bytes) { return {bytes, bytes / 4, ShardIndex(shard)}; }

TEST_CASE("a variable whose shard is given stays there and its bytes count") {
  CHECK(Shards({{50}, {40}, On(0, 4)}, 2) == std::vector<uint32_t>{1, 0, 0});
  CHECK(Shards({{50}, On(0, 100), {49}}, 2) == std::vector<uint32_t>{1, 0, 1});
  CHECK(Shards({{50}, On(2, 100), {49}}, 3) == std::vector<uint32_t>{0, 2, 1});
}

TEST_CASE("least loaded goes in the variables' order and counts elements, not bytes") {
  // The second has the most bytes, in few elements.
  CHECK(Shards({{40, 10}, {64, 8}, {12, 3}, {4, 1}, {4, 1}}, 2, kLeastLoaded) ==
        std::vector<uint32_t>{0, 1, 1, 0, 0});
  CHECK(Shards({{0, 0}, {0, 0}, {4, 1}}, 3, kLeastLoaded) == std::vector<uint32_t>{0, 0, 0});
}

TEST_CASE("least loaded counts a given variable in its turn") {
  CHECK(Shards({{4, 1}, On(1, 40), {4, 1}, {4, 1}}, 2, kLeastLoaded) ==
        std::vector<uint32_t>{0, 1, 0, 0});
  // One that is given later is not known yet.
  CHECK(Shards({{4, 1}, {4, 1}, On(1, 40)}, 2, kLeastLoaded) == std::vector<uint32_t>{0, 1, 1});
}

TEST_CASE("round robin takes one shard after the other, whatever the sizes, without given ones") {
  CHECK(Shards({{400}, {4}, {4}, {4}}, 3, kRoundRobin) == std::vector<uint32_t>{0, 1, 2, 0});
  CHECK(Shards({{4}, On(1, 4), {4}, On(0, 4), {4}}, 3, kRoundRobin) ==
        std::vector<uint32_t>{0, 1, 1, 0, 2});
}

TEST_CASE("there may be no variables, one shard, or more shards than variables") {
  CHECK(Shards({}, 4).empty());
  CHECK(Shards({{1}, {2}}, 1) == std::vector<uint32_t>{0, 0});
  CHECK(Shards({{1}, {2}}, 5) == std::vector<uint32_t>{1, 0});
  CHECK(MeasureBalance({}, {}, 3).max_bytes == 0);
}

TEST_CASE("the balance is that of the fullest shard and of the mean") {
  const std::vector<VariableSize> variables = {{30}, {10}, {20}};
  const Balance balance = MeasureBalance(variables, AssignShards(variables, 2, kBalanced), 2);
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
        MeasureBalance(variables, AssignShards(variables, num_shards, kBalanced), num_shards)
            .max_bytes;
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
        MeasureBalance(variables, AssignShards(variables, num_shards, kBalanced), num_shards);
    CAPTURE(round, num_shards, variables.size());
    CHECK(balance.max_bytes < balance.mean_bytes + largest + 1);
  }
}

}  // namespace
}  // namespace lockstep::chief
