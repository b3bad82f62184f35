#include "worker/strategy/replicated/reduction_of_job.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

const std::vector<TensorSpec> kTensors = {{.name = "a", .shape = Shape({3, 5})},
                                          {.name = "b", .shape = Shape({7})},
                                          {.name = "c", .shape = Shape({2000, 8})}};

absl::StatusOr<ChosenReduction> Choose(const std::string& text, const Topology& topology) {
  StrategyDef::Replicated def;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &def));
  return ReductionOf(def, topology, kTensors);
}

std::string ErrorOf(const std::string& text, const Topology& topology) {
  const auto chosen = Choose(text, topology);
  REQUIRE_FALSE(chosen.ok());
  CHECK(absl::IsInvalidArgument(chosen.status()));
  return std::string(chosen.status().message());
}

TEST_CASE("where the job names nothing, devices and workers decide, and say why") {
  const auto towers = Choose("", {.workers = 1, .towers = 4});
  CHECK(towers->name == "reduction_to_one_device");
  CHECK_FALSE(towers->reason.empty());
  REQUIRE(towers->warnings.size() == 1);
  CHECK_THAT(towers->warnings[0], Contains("not using nccl all-reduce"));
  CHECK(towers->reduction.average);
  const auto workers = Choose("average: false", {.workers = 3, .towers = 2});
  CHECK(workers->name == "COLLECTIVE");
  CHECK(workers->reason == "the towers are of 3 workers");
  CHECK_FALSE(workers->reduction.average);
  CHECK(workers->reduction.plan.algorithms ==
        std::vector<ReductionAlgorithm>(kTensors.size(), ReductionAlgorithm::kCollective));
}

TEST_CASE("tables are gathered, whatever reduces the rest") {
  std::vector<TensorSpec> tensors = kTensors;
  tensors.push_back({.name = "table", .shape = Shape({64}), .shares = 1});
  const Topology topology{.workers = 2, .towers = 3};
  for (const char* const text :
       {"", "average: false", "cross_tower_ops { reduction_to_one_device {} }",
        "cross_tower_ops { multi_worker_all_reduce { packing { num_packs: 2 } } }"}) {
    CAPTURE(text);
    StrategyDef::Replicated def;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &def));
    const GroupReduction reduction = ReductionOf(def, topology, tensors)->reduction;
    CHECK(reduction.tensors.back() ==
          TensorSpec{.name = "table", .shape = Shape({6 * 64}), .shares = 6});
    CHECK(reduction.plan.algorithms.back() == ReductionAlgorithm::kGather);
    CHECK(reduction.plan.packing.vectors().back().elements == 6 * 64);
    CHECK(reduction.plan.schedules.back().Total() == Traffic{6 * 5, 6 * 5 * 64});
    CHECK(std::ranges::count(reduction.plan.algorithms, ReductionAlgorithm::kGather) == 1);
  }
}

TEST_CASE("modes and ops become the algorithms of their name") {
  const auto [text, workers, towers, name, algorithm] =
      GENERATE(table<std::string, int, int, std::string, ReductionAlgorithm>(
          {{"mode: CPU", 1, 3, "CPU", ReductionAlgorithm::kReductionToOne},
           {"mode: GPU", 1, 3, "GPU", ReductionAlgorithm::kReductionToOne},
           {"mode: HIERARCHICAL", 1, 8, "HIERARCHICAL", ReductionAlgorithm::kHierarchicalCopy},
           {"mode: COLLECTIVE", 1, 2, "COLLECTIVE", ReductionAlgorithm::kCollective},
           {"cross_tower_ops { reduction_to_one_device { reduce_to_device: 1 } }", 2, 2,
            "reduction_to_one_device", ReductionAlgorithm::kReductionToOne},
           {"cross_tower_ops { all_reduce { all_reduce_alg: 'hierarchical_copy' } }", 1, 3,
            "all_reduce hierarchical_copy", ReductionAlgorithm::kHierarchicalCopy},
           {"cross_tower_ops { multi_worker_all_reduce {} }", 2, 1,
            "multi_worker_all_reduce pscpu/pscpu#2", ReductionAlgorithm::kPscpuPscpu},
           {"cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: 'xring#2' } }", 2, 2,
            "multi_worker_all_reduce xring#2", ReductionAlgorithm::kXring},
           {"cross_tower_ops { collective_all_reduce { all_reduce_merge_scope: 4 } }", 4, 1,
            "collective_all_reduce", ReductionAlgorithm::kCollective}}));
  CAPTURE(text);
  const auto chosen = Choose(text, {.workers = workers, .towers = towers});
  REQUIRE(chosen.ok());
  CHECK(chosen->name == name);
  CHECK(chosen->reason.empty());
  CHECK(chosen->reduction.plan.algorithms.front() == algorithm);
}

TEST_CASE("with mode GPU the towers take turns from the last variable on") {
  const auto chosen = Choose("mode: GPU", {.workers = 1, .towers = 2});
  const std::vector<Schedule>& schedules = chosen->reduction.plan.schedules;
  std::vector<int> adds;  // the tower, by variable
  for (const Schedule& schedule : schedules) {
    const absl::Span<const Operation> first = schedule.operations(0);
    adds.push_back(std::ranges::any_of(first,
                                       [](const Operation& operation) {
                                         return operation.kind == Operation::Kind::kSum;
                                       })
                       ? 0
                       : 1);
  }
  CHECK(adds == std::vector<int>{0, 1, 0});
}

TEST_CASE("collective_all_reduce issues gradients in scopes, the others all at once") {
  const Topology two{.workers = 2, .towers = 1};
  const auto scope = [&](const std::string& text) {
    return Choose(text, two)->reduction.merge_scope;
  };
  CHECK(scope("cross_tower_ops { collective_all_reduce {} }") == 32);
  CHECK(scope("cross_tower_ops { collective_all_reduce { all_reduce_merge_scope: 4 } }") == 4);
  CHECK(scope("mode: COLLECTIVE") == 0);
}

TEST_CASE("packing joins the gradients as it says") {
  const Topology two{.workers = 2, .towers = 1};
  const auto vectors = [&](const std::string& packing) {
    return Choose(
               "cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: 'xring' packing { " +
                   packing + " } } }",
               two)
        ->reduction.plan.packing.vectors()
        .size();
  };
  CHECK(vectors("") == 3);
  CHECK(vectors("num_packs: 2") == 2);
  CHECK(vectors("agg_small_grads_max_bytes: 64") == 2);
}

TEST_CASE("what cannot be reduced so is refused with its field") {
  const Topology one{.workers = 1, .towers = 2};
  const Topology two{.workers = 2, .towers = 1};
  CHECK_THAT(ErrorOf("mode: NCCL", one), Contains("needs GPUs"));
  const auto spec = [](const std::string& text) {
    return "cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: '" + text + "' } }";
  };
  CHECK_THAT(ErrorOf(spec("pscpu:2k"), two), Contains("strategy.replicated.cross_tower_ops"));
  CHECK_THAT(ErrorOf(spec("xring#2"), two), Contains("strategy.replicated.cross_tower_ops"));
  CHECK_THAT(ErrorOf(spec("psgpu"), two), Contains("GPU"));
  CHECK_THAT(ErrorOf("cross_tower_ops { all_reduce {} }", one), Contains("nccl"));
  CHECK_THAT(ErrorOf("cross_tower_ops { all_reduce { all_reduce_alg: 'hierarchical_copy' } }", two),
             Contains("strategy.replicated.cross_tower_ops"));
  CHECK_THAT(ErrorOf("cross_tower_ops { reduction_to_one_device { reduce_to_device: -1 } }", one),
             Contains("reduce_to_device: expected a number from 0, got -1"));
  CHECK_THAT(
      ErrorOf("cross_tower_ops { collective_all_reduce { all_reduce_merge_scope: -1 } }", one),
      Contains("all_reduce_merge_scope"));
}

}  // namespace
}  // namespace lockstep::worker
