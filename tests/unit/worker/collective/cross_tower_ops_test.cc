// Reduction to one device, what every op refuses, and the warnings of those that are no all-reduce.
#include "worker/collective/cross_tower_ops.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/worker/collective/device_values_for_tests.h"
#include "worker/collective/all_reduce.h"
#include "worker/collective/collective_all_reduce.h"
#include "worker/collective/multi_worker_all_reduce.h"
#include "worker/collective/reduction_to_one_device.h"

namespace lockstep::worker {
namespace {

using test::Cpu;
using test::ElementsOf;
using test::IndicesOf;
using test::Values;
using Floats = std::vector<float>;

constexpr char kSparseWarning[] = "Efficient allreduce is not supported for IndexedSlices.";
constexpr char kBatchWarning[] =
    "Efficient batch_reduce is not supported if destinations are different.";

std::unique_ptr<AllReduce> HierarchicalCopy(PackingOptions packing = {}) {
  return *AllReduce::Create({"hierarchical_copy", packing});
}

void CheckRefused(const absl::Status& status, const std::string& words) {
  INFO(status);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains(words));
}

// One of each implementation, all for three towers of one worker.
std::vector<std::unique_ptr<CrossTowerOps>> AllOps() {
  std::vector<std::unique_ptr<CrossTowerOps>> ops;
  ops.push_back(std::make_unique<ReductionToOneDevice>());
  ops.push_back(HierarchicalCopy());
  ops.push_back(HierarchicalCopy({0, 1024, 10}));
  MultiWorkerAllReduceOptions options;
  options.topology = {1, 3};
  ops.push_back(*MultiWorkerAllReduce::Create(options));
  ops.push_back(*CollectiveAllReduce::Create());
  return ops;
}

TEST_CASE("every op gives the sum or the mean to every destination") {
  Values values;
  for (const auto& ops : AllOps()) {
    const PerDevice value =
        values.OnCpus({values.Dense({1, 2}), values.Dense({3, 4}), values.Dense({5, 9})});
    const auto sum = ops->Reduce(Aggregation::kSum, value, value);
    REQUIRE(sum.ok());
    REQUIRE(sum->copies.size() == 3);
    for (const auto& copy : sum->copies) CHECK(ElementsOf(copy.value) == Floats{9, 15});
    const auto mean = ops->Reduce(Aggregation::kMean, value, value);
    for (const auto& copy : mean->copies) CHECK(ElementsOf(copy.value) == Floats{3, 5});
    CHECK(ops->TakeWarnings().empty());
  }
}

TEST_CASE("every op reduces to any destinations, in their order") {
  Values values;
  for (const auto& ops : AllOps()) {
    const PerDevice value =
        values.OnCpus({values.Dense({1}), values.Dense({3}), values.Dense({5})});
    for (const std::vector<DeviceId>& devices :
         {std::vector<DeviceId>{Cpu(1)}, {Cpu(7)}, {Cpu(2), Cpu(0)}, {Cpu(9), Cpu(1), Cpu(0)}}) {
      const auto mean = ops->Reduce(Aggregation::kMean, value, devices);
      REQUIRE(mean.ok());
      CHECK(mean->devices() == devices);
      for (const auto& copy : mean->copies) CHECK(ElementsOf(copy.value) == Floats{3});
    }
  }
}

TEST_CASE("results of a batch are in the order of its pairs") {
  Values values;
  for (const auto& ops : AllOps()) {
    std::vector<ValueDestinationPair> pairs;
    for (int i = 0; i < 70; ++i) {
      const auto x = static_cast<float>(i);
      const PerDevice value =
          values.OnCpus({values.Dense({x}), values.Dense({x + 1}), values.Dense({x + 2})});
      pairs.push_back({value, value});
    }
    const auto results = ops->BatchReduce(Aggregation::kMean, pairs);
    REQUIRE(results.ok());
    REQUIRE(results->size() == 70);
    for (int i = 0; i < 70; ++i) {
      CHECK(ElementsOf((*results)[i].at(Cpu(2))) == Floats{static_cast<float>(i) + 1});
    }
    CHECK(ops->BatchReduce(Aggregation::kSum, {})->empty());
  }
}

TEST_CASE("every op refuses what is no value, no destination and no aggregation") {
  Values values;
  const PerDevice good = values.OnCpus({values.Dense({1}), values.Dense({2})});
  for (const auto& ops : AllOps()) {
    const auto reduce = [&](const PerDevice& value, const Destinations& destinations) {
      return ops->Reduce(Aggregation::kSum, value, destinations).status();
    };
    CheckRefused(reduce(good, std::vector<DeviceId>{}), "destinations can not be empty");
    CheckRefused(reduce(good, PerDevice()), "destinations can not be empty");
    CheckRefused(reduce(good, std::vector<DeviceId>{Cpu(0), Cpu(0)}), "cpu:0 comes twice");
    CheckRefused(reduce(PerDevice(), Cpu(0)), "`per_device_value` must be non-empty");
    CheckRefused(reduce(PerDevice(DeviceValue{Cpu(0), {}}), Cpu(0)),
                 "`per_device_value` must be non-empty");
    CheckRefused(reduce(DeviceValue{std::nullopt, {values.Dense({1})}}, Cpu(0)),
                 "a value without a device");
    CheckRefused(reduce(values.OnCpus({values.Dense({1}), values.Dense({1, 2})}), Cpu(0)),
                 "value on worker 0 cpu:1: expected float32 [1]");
    CheckRefused(reduce(values.OnCpus({values.Dense({1}), values.Sparse({0}, {1, 2})}), Cpu(0)),
                 "slices");
    CheckRefused(reduce(values.OnCpus({values.Sparse({0, 1}, {1, 2})}), Cpu(0)),
                 "2 indices, values of shape [1,2]");
    PerDevice twice = good;
    twice.values[1].device = Cpu(0);
    CheckRefused(reduce(twice, Cpu(0)), "cpu:0 comes twice");
    CheckRefused(ops->Reduce(static_cast<Aggregation>(7), good, good).status(),
                 "`aggregation` must be SUM or MEAN, got 7");
    const std::vector<ValueDestinationPair> pairs = {{good, good}, {good, std::vector<DeviceId>{}}};
    CheckRefused(ops->BatchReduce(Aggregation::kSum, pairs).status(),
                 "`value_destination_pairs`, element 1: destinations can not be empty");
    const Tensor whole = Tensor::Zeros(DType::kInt32, Shape({1}));
    CheckRefused(reduce(DeviceValue{Cpu(0), {whole.view()}}, Cpu(0)), "got int32");
    CheckRefused(ops->Broadcast(values.Dense({1}), std::vector<DeviceId>{}).status(),
                 "destinations can not be empty");
  }
}

TEST_CASE("several values of a device are added there first, and all are counted") {
  Values values;
  const PerDevice value({{Cpu(0), {values.Dense({1}), values.Dense({3})}},
                         {Cpu(1), {}},
                         {Cpu(2), {values.Dense({5})}}});
  for (const auto& ops : AllOps()) {
    if (dynamic_cast<CollectiveAllReduce*>(ops.get()) != nullptr) {
      CheckRefused(ops->Reduce(Aggregation::kMean, value, value).status(), "one value on each");
      continue;
    }
    const auto mean = ops->Reduce(Aggregation::kMean, value, value);
    REQUIRE(mean.ok());
    CHECK(ElementsOf(mean->at(Cpu(1))) == Floats{3});
  }
}

TEST_CASE("sparse values are put one after another, and a mean divides each of them") {
  Values values;
  const PerDevice value = values.OnCpus(
      {values.Sparse({3, 1}, {2, 4, 6, 8}), values.Sparse({}, {}), values.Sparse({3}, {1, 3})});
  ReductionToOneDevice ops;
  const auto mean = ops.Reduce(Aggregation::kMean, value, Cpu(5));
  REQUIRE(mean.ok());
  CHECK(IndicesOf(mean->at(Cpu(5))) == std::vector<int64_t>{3, 1, 3});
  const float third = 1.0f / 3;
  CHECK(ElementsOf(mean->at(Cpu(5)))[4] == third);
  CHECK(ElementsOf(mean->at(Cpu(5)))[2] == 2);
  CHECK(ops.TakeWarnings().empty());
}

TEST_CASE("the accumulation function replaces the addition across devices") {
  Values values;
  const auto largest = [](absl::Span<const TensorView> terms, const MutableTensorView& to) {
    for (size_t i = 0; i < to.as<float>().size(); ++i) {
      to.as<float>()[i] = terms[0].as<float>()[i];
      for (const TensorView& term : terms) {
        to.as<float>()[i] = std::max(to.as<float>()[i], term.as<float>()[i]);
      }
    }
  };
  ReductionToOneDevice ops(Cpu(4), largest);
  CHECK(ops.Target(Cpu(1)) == Cpu(4));
  CHECK(ReductionToOneDevice().Target(std::vector<DeviceId>{Cpu(2), Cpu(1)}) == Cpu(2));
  const PerDevice value = values.OnCpus({values.Dense({1, 9}), values.Dense({7, 2})});
  CHECK(ElementsOf(ops.Reduce(Aggregation::kSum, value, Cpu(0))->at(Cpu(0))) == Floats{7, 9});
  CHECK(ElementsOf(ops.Reduce(Aggregation::kMean, value, Cpu(0))->at(Cpu(0))) == Floats{3.5, 4.5});
}

TEST_CASE("a broadcast gives every destination memory of its own") {
  Values values;
  const Value value = values.Dense({1, 2});
  ReductionToOneDevice ops;
  const auto mirrored = ops.Broadcast(value, std::vector<DeviceId>{Cpu(0), Cpu(3)});
  REQUIRE(mirrored.ok());
  CHECK(ElementsOf(mirrored->at(Cpu(3))) == Floats{1, 2});
  CHECK(std::get<Tensor>(mirrored->at(Cpu(0))).data() !=
        std::get<Tensor>(mirrored->at(Cpu(3))).data());
}

TEST_CASE("an all-reduce of sparse values warns, at most ten times") {
  Values values;
  const auto ops = HierarchicalCopy();
  const PerDevice sparse = values.OnCpus({values.Sparse({0}, {1, 2}), values.Sparse({0}, {3, 4})});
  const PerDevice dense = values.OnCpus({values.Dense({1}), values.Dense({2})});
  const std::vector<ValueDestinationPair> pairs = {{sparse, sparse}, {dense, dense}};
  const auto results = ops->BatchReduce(Aggregation::kSum, pairs);
  REQUIRE(results.ok());
  CHECK(IndicesOf((*results)[0].at(Cpu(1))) == std::vector<int64_t>{0, 0});
  CHECK(ElementsOf((*results)[1].at(Cpu(1))) == Floats{3});
  CHECK(ops->TakeWarnings() == std::vector<std::string>{kSparseWarning});
  for (int i = 0; i < 20; ++i) REQUIRE(ops->BatchReduce(Aggregation::kSum, pairs).ok());
  CHECK(ops->TakeWarnings().size() == 9);
}

TEST_CASE("a batch with different destinations warns once, and pairs that match are reduced") {
  Values values;
  const auto ops = HierarchicalCopy();
  const PerDevice value = values.OnCpus({values.Dense({1}), values.Dense({2})});
  const std::vector<ValueDestinationPair> pairs = {{value, value}, {value, Cpu(0)}};
  const auto results = ops->BatchReduce(Aggregation::kSum, pairs);
  REQUIRE(results.ok());
  CHECK((*results)[0].copies.size() == 2);
  CHECK((*results)[1].copies.size() == 1);
  CHECK(ops->TakeWarnings() == std::vector<std::string>{kBatchWarning});
  const PerDevice other({{Cpu(1), {values.Dense({1})}}, {Cpu(2), {values.Dense({2})}}});
  REQUIRE(ops->BatchReduce(Aggregation::kSum, {{value, value}, {other, other}}).ok());
  CHECK(ops->TakeWarnings() == std::vector<std::string>{kBatchWarning});
  const PerDevice reversed({{Cpu(1), {values.Dense({1})}}, {Cpu(0), {values.Dense({2})}}});
  REQUIRE(ops->BatchReduce(Aggregation::kSum, {{value, reversed}, {reversed, value}}).ok());
  CHECK(ops->TakeWarnings().empty());
}

}  // namespace
}  // namespace lockstep::worker
