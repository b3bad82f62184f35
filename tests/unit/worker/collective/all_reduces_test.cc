// What each all-reduce takes and refuses, its plans, and that packing changes no bit.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "tests/unit/worker/collective/device_values_for_tests.h"
#include "worker/collective/all_reduce.h"
#include "worker/collective/collective_all_reduce.h"
#include "worker/collective/multi_worker_all_reduce.h"
#include "worker/collective/reduction_to_one_device.h"

namespace lockstep::worker {
namespace {

using test::Cpu;
using test::ElementsOf;
using test::Values;
using Floats = std::vector<float>;

void CheckRefused(const absl::Status& status, const std::string& words) {
  INFO(status);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains(words));
}

MultiWorkerAllReduceOptions OnCpus(Topology topology, absl::string_view spec) {
  MultiWorkerAllReduceOptions options;
  options.topology = topology;
  options.all_reduce_spec = *AllReduceSpec::Parse(spec);
  return options;
}

std::vector<TensorSpec> Floats32(const std::vector<int64_t>& sizes) {
  std::vector<TensorSpec> specs;
  for (const int64_t size : sizes) specs.push_back({"v", DType::kFloat32, Shape({size})});
  return specs;
}

// Random dense values of several sizes, on `workers` with `towers` each.
std::vector<ValueDestinationPair> DrawBatch(const Topology& topology, Values* values) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::vector<ValueDestinationPair> pairs;
  for (const size_t size : {7, 0, 300, 1, 2000, 40, 41}) {
    PerDevice value;
    for (int rank = 0; rank < topology.num_participants(); ++rank) {
      Floats elements(size);
      for (float& element : elements) element = normal(random);
      value.values.push_back(
          {Cpu(rank % topology.towers, rank / topology.towers), {values->Dense(elements)}});
    }
    pairs.push_back({value, value});
  }
  return pairs;
}

bool HaveSameBits(const std::vector<Mirrored>& a, const std::vector<Mirrored>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (const Mirrored::Copy& copy : a[i].copies) {
      const Floats one = ElementsOf(copy.value);
      const Floats other = ElementsOf(b[i].at(copy.device));
      if (one.size() != other.size()) return false;
      if (!one.empty() && std::memcmp(one.data(), other.data(), 4 * one.size()) != 0) return false;
    }
  }
  return a.size() == b.size();
}

TEST_CASE("nccl is refused without GPUs, and an unknown algorithm always") {
  CheckRefused(AllReduce::Create({}).status(), "nccl needs GPUs");
  CheckRefused(AllReduce::Create({"ring"}).status(), "got \"ring\"");
  CHECK(AllReduce::Create({"nccl", {}, true}).ok());
  CheckRefused(MultiWorkerAllReduce::Create(OnCpus({2, 2}, "xring:2k:psgpu")).status(),
               "range 1: psgpu needs GPUs");
  CheckRefused(MultiWorkerAllReduce::Create(OnCpus({2, 2}, "nccl/xring")).status(),
               "nccl/xring needs GPUs");
  auto gpus = OnCpus({2, 2}, "nccl/xring:2k:psgpu#4");
  gpus.has_gpus = true;
  CHECK(MultiWorkerAllReduce::Create(gpus).ok());
}

TEST_CASE("a spec that the workers cannot run is refused at the start") {
  CheckRefused(MultiWorkerAllReduce::Create(OnCpus({2, 2}, "pscpu:1k:xring#3")).status(),
               "range 1: xring over 2 workers with 2 towers each: shards");
  CheckRefused(MultiWorkerAllReduce::Create(OnCpus({2, 2}, "pscpu#3")).status(), "range 0");
  CheckRefused(MultiWorkerAllReduce::Create(OnCpus({1, 1}, "xring")).status(), "a ring has");
}

TEST_CASE("a reduction over several workers covers all of their towers") {
  Values values;
  const auto ops = *MultiWorkerAllReduce::Create(OnCpus({2, 2}, "xring"));
  const auto reduce = [&](const std::vector<DeviceId>& devices) {
    PerDevice value;
    for (const DeviceId& device : devices) value.values.push_back({device, {values.Dense({1})}});
    return ops->Reduce(Aggregation::kMean, value, value).status();
  };
  CHECK(reduce({Cpu(0, 1), Cpu(0, 0), Cpu(1, 0), Cpu(1, 1)}).ok());
  CheckRefused(reduce({Cpu(0, 0), Cpu(1, 0)}), "name all towers of all workers");
  CheckRefused(reduce({Cpu(0, 0), Cpu(1, 0), Cpu(0, 1)}), "worker 1 has fewer than 2");
  CheckRefused(reduce({Cpu(0, 0), Cpu(0, 2)}), "worker 2 cpu:0 at position 1");
  CheckRefused(reduce({Cpu(0, 1), Cpu(1, 1)}), "worker 1 cpu:0 at position 0");
  CheckRefused(
      (*AllReduce::Create({"hierarchical_copy"}))
          ->Reduce(Aggregation::kSum,
                   PerDevice({{Cpu(0, 0), {values.Dense({1})}}, {Cpu(0, 1), {values.Dense({1})}}}),
                   std::vector<DeviceId>{Cpu(0, 0), Cpu(0, 1)})
          .status(),
      "devices of one worker");
}

TEST_CASE("each tensor is reduced by the algorithm of its size, packed within its range") {
  auto options = OnCpus({2, 1}, "pscpu:64:xring");
  options.packing = {0, 1024, 10};
  const auto ops = *MultiWorkerAllReduce::Create(options);
  const auto plan = ops->Plan({2, 1}, Floats32({16, 17, 3, 300, 1, 18}));
  REQUIRE(plan.ok());
  REQUIRE(plan->packing.vectors().size() == 4);
  CHECK(plan->packing.vectors()[0].segments ==
        std::vector<PackedSegment>{{0, 0, 16}, {2, 0, 3}, {4, 0, 1}});
  // Of the second range, the small ones are no neighbours.
  CHECK(plan->packing.vectors()[1].segments == std::vector<PackedSegment>{{1, 0, 17}});
  CHECK(plan->packing.vectors()[2].segments == std::vector<PackedSegment>{{3, 0, 300}});
  CHECK(plan->packing.vectors()[3].segments == std::vector<PackedSegment>{{5, 0, 18}});
  CHECK(plan->packing.num_packs() == 1);
  CHECK(plan->schedules.size() == plan->packing.vectors().size());
  CheckRefused(ops->Plan({1, 2}, Floats32({1})).status(), "expected 2 workers with 1 towers");
  CheckRefused(ops->Plan({2, 1}, {{"bias", DType::kFloat32, std::nullopt}}).status(),
               "Shape is unknown for node bias");
}

TEST_CASE("packing changes no bit of hierarchical copies and shuffles") {
  Values values;
  const auto one_worker = DrawBatch({1, 5}, &values);
  std::vector<std::vector<Mirrored>> results;
  for (const PackingOptions& packing :
       {PackingOptions{0, 0, 10}, {1, 0, 10}, {3, 0, 10}, {0, 1024, 2}}) {
    const auto ops = *AllReduce::Create({"hierarchical_copy", packing});
    results.push_back(*ops->BatchReduce(Aggregation::kMean, one_worker));
    CHECK(HaveSameBits(results[0], results.back()));
  }
  const auto two_workers = DrawBatch({3, 2}, &values);
  for (const char* spec : {"pscpu#2", "pscpu/pscpu#3", "pscpu:64:pscpu#3"}) {
    auto options = OnCpus({3, 2}, spec);
    const auto plain = *MultiWorkerAllReduce::Create(options);
    options.packing = {0, 1024, 4};
    const auto packed = *MultiWorkerAllReduce::Create(options);
    CHECK(HaveSameBits(*plain->BatchReduce(Aggregation::kSum, two_workers),
                       *packed->BatchReduce(Aggregation::kSum, two_workers)));
  }
}

TEST_CASE("with two towers every op gives the bits of a reduction to one device") {
  Values values;
  const auto pairs = DrawBatch({2, 1}, &values);
  const auto expected = *ReductionToOneDevice().BatchReduce(Aggregation::kMean, pairs);
  for (const char* spec : {"xring", "rechd", "pscpu", "pscpu#2", "pscpu/pscpu#2", "collective",
                           "pscpu:100:rechd:1k:xring"}) {
    const auto ops = *MultiWorkerAllReduce::Create(OnCpus({2, 1}, spec));
    CHECK(HaveSameBits(expected, *ops->BatchReduce(Aggregation::kMean, pairs)));
  }
  CHECK(HaveSameBits(expected,
                     *(*CollectiveAllReduce::Create())->BatchReduce(Aggregation::kMean, pairs)));
}

TEST_CASE("a collective refuses a batch with a sparse value whole") {
  Values values;
  const auto ops = *CollectiveAllReduce::Create();
  const PerDevice dense = values.OnCpus({values.Dense({1}), values.Dense({2})});
  const PerDevice sparse = values.OnCpus({values.Sparse({0}, {1, 2})});
  CheckRefused(ops->BatchReduce(Aggregation::kSum, {{dense, dense}, {sparse, sparse}}).status(),
               "`IndexSlices` is not supported for Collective All-Reduce.");
  CheckRefused(ops->Reduce(Aggregation::kSum, sparse, sparse).status(), "IndexSlices");
  CheckRefused(CollectiveAllReduce::Create(0).status(), "all_reduce_merge_scope");
}

TEST_CASE("destinations outside a collective's group get a copy of the first") {
  Values values;
  const auto ops = *CollectiveAllReduce::Create();
  const PerDevice value = values.OnCpus({values.Dense({1}), values.Dense({2})});
  const auto sum =
      ops->Reduce(Aggregation::kSum, value, std::vector<DeviceId>{Cpu(5), Cpu(1), Cpu(0)});
  REQUIRE(sum.ok());
  for (const auto& copy : sum->copies) CHECK(ElementsOf(copy.value) == Floats{3});
  const PerDevice alone = values.OnCpus({values.Dense({4})});
  CHECK(ElementsOf(ops->Reduce(Aggregation::kMean, alone, alone)->at(Cpu(0))) == Floats{4});
}

TEST_CASE("consecutive gradients merge into scopes of 32") {
  CHECK(CollectiveAllReduce::kMergeScope == 32);
  CHECK(MergeScopes(0, 32).empty());
  CHECK(MergeScopes(32, 32) == std::vector<MergeScope>{{0, 32}});
  CHECK(MergeScopes(70, 32) == std::vector<MergeScope>{{0, 32}, {32, 32}, {64, 6}});
}

TEST_CASE("collectives are numbered within their group, alike in every process") {
  const auto one = *CollectiveAllReduce::Create();
  const auto other = *CollectiveAllReduce::Create();
  const std::vector<DeviceId> group = {Cpu(0, 0), Cpu(0, 1)};
  const std::vector<DeviceId> reversed = {Cpu(0, 1), Cpu(0, 0)};
  const std::vector<DeviceId> larger = {Cpu(0, 0), Cpu(0, 1), Cpu(0, 2)};
  const auto calls = one->Calls(group, Floats32({5, 6}));
  CHECK(calls == other->Calls(reversed, Floats32({5, 6})));
  CHECK(calls[1].key.instance == 1);
  CHECK(one->Calls(larger, Floats32({5}))[0].key.instance == 0);
  CHECK(one->Calls(group, Floats32({5}))[0].key.instance == 2);
  CHECK(CollectiveKeys::GroupOf(group) != CollectiveKeys::GroupOf(larger));
}

TEST_CASE("a message of another collective is an error that names both") {
  const CollectiveCall own{{7, 3}, ReductionAlgorithm::kCollective, 100};
  CHECK(CheckSameCall(own, own, "worker 1").ok());
  for (const CollectiveCall& theirs : {CollectiveCall{{8, 3}, ReductionAlgorithm::kCollective, 100},
                                       {{7, 4}, ReductionAlgorithm::kCollective, 100},
                                       {{7, 3}, ReductionAlgorithm::kXring, 100},
                                       {{7, 3}, ReductionAlgorithm::kCollective, 101}}) {
    const absl::Status status = CheckSameCall(own, theirs, "worker 1");
    CheckRefused(status, ToString(own));
    CheckRefused(status, ToString(theirs) + " from worker 1");
  }
}

}  // namespace
}  // namespace lockstep::worker
