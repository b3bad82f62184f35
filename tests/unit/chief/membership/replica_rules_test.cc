#include "chief/membership/replica_rules.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::chief {
namespace {

std::vector<WorkerIndex> Workers(const std::vector<uint32_t>& indices) {
  return {indices.begin(), indices.end()};
}

std::vector<uint32_t> Chosen(const ReplicaRules& rules, const std::vector<uint32_t>& candidates,
                             const ReplicaView* current = nullptr) {
  std::vector<uint32_t> chosen;
  for (WorkerIndex worker : ChooseReplicas(rules, Workers(candidates), current)) {
    chosen.push_back(worker.value());
  }
  return chosen;
}

TEST_CASE("every candidate takes part where the global batch divides evenly over them") {
  const ReplicaRules rules{.min_replicas = 1, .global_batch = 12};
  CHECK(Chosen(rules, {0, 2, 5}) == std::vector<uint32_t>{0, 2, 5});
  CHECK(Chosen(rules, {7}) == std::vector<uint32_t>{7});
  CHECK(Chosen(rules, {}).empty());
}

TEST_CASE("those whom the batch does not divide over wait: replicas that train keep their place") {
  const ReplicaRules rules{.min_replicas = 1, .global_batch = 12};
  CHECK(Chosen(rules, {0, 1, 2, 3, 4}) == std::vector<uint32_t>{0, 1, 2, 3});
  const ReplicaView current = MakeReplicaView(rules, 1, GlobalStep(0), Workers({1, 2, 3, 4}));
  CHECK(Chosen(rules, {0, 1, 2, 3, 4}, &current) == std::vector<uint32_t>{1, 2, 3, 4});
  CHECK(Chosen(rules, {0, 1, 2, 4, 9}, &current) == std::vector<uint32_t>{0, 1, 2, 4});
  const ReplicaRules of_two_towers{.min_replicas = 1, .global_batch = 12, .towers = 2};
  CHECK(Chosen(of_two_towers, {0, 1, 2, 3}) == std::vector<uint32_t>{0, 1, 2});
}

TEST_CASE("there is no view of fewer replicas than min_replicas") {
  const ReplicaRules rules{.min_replicas = 2, .global_batch = 9};
  CHECK(Chosen(rules, {0}).empty());
  CHECK(Chosen(rules, {0, 1}).empty());  // 9 does not divide by 2
  CHECK(Chosen(rules, {0, 1, 2, 3}) == std::vector<uint32_t>{0, 1, 2});
}

TEST_CASE("a view needs every gradient, or as many as the job says and there are replicas") {
  ReplicaRules rules{.min_replicas = 1, .global_batch = 12};
  CHECK(MakeReplicaView(rules, 1, GlobalStep(0), Workers({0, 1, 2})).aggregate == 3);
  rules.aggregate = 2;
  CHECK(MakeReplicaView(rules, 1, GlobalStep(0), Workers({0, 1, 2})).aggregate == 2);
  const ReplicaView view = MakeReplicaView(rules, 7, GlobalStep(5), Workers({4}));
  CHECK(view.aggregate == 1);
  CHECK(view.number == 7);
  CHECK(view.first == GlobalStep(5));
  CHECK(view.Check().ok());
}

}  // namespace
}  // namespace lockstep::chief
