// Every cross-tower op and packer, over 1 to 9 devices: sums and means of values of every size, the
// same bits on every destination. Values are small whole numbers, whose sums are exact in any
// order; docs/collectives.md has the orders, and collective_test.cc holds them.
#include "worker/collective/cross_tower_ops.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "worker/collective/all_reduce.h"
#include "worker/collective/collective_all_reduce.h"
#include "worker/collective/multi_worker_all_reduce.h"
#include "worker/collective/reduction_to_one_device.h"

namespace lockstep::conformance {
namespace {

using worker::Aggregation;
using worker::AllReduce;

using worker::CollectiveAllReduce;
using worker::CrossTowerOps;
using worker::DeviceId;
using worker::DeviceKind;
using worker::Mirrored;
using worker::MultiWorkerAllReduce;
using worker::MultiWorkerAllReduceOptions;
using worker::PackingOptions;
using worker::PerDevice;
using worker::ReductionToOneDevice;
using worker::ValueDestinationPair;

const std::vector<PackingOptions> kPackers = {
    {0, 0, 10}, {1, 0, 10}, {4, 0, 10}, {0, 400, 2}, {0, 1 << 20, 16}};

struct OpsUnderTest {
  std::string name;
  Topology topology;
  std::unique_ptr<CrossTowerOps> ops;
};

void AddAcrossWorkers(const Topology& topology, const char* spec, const PackingOptions& packing,
                      std::vector<OpsUnderTest>* all) {
  MultiWorkerAllReduceOptions options{topology, *AllReduceSpec::Parse(spec), packing};
  options.has_gpus = true;  // so that none is refused
  auto ops = MultiWorkerAllReduce::Create(options);
  if (!ops.ok()) FAIL(spec << ": " << ops.status());
  all->push_back({spec, topology, *std::move(ops)});
}

// Over `n` devices, in all the ways in which they divide into workers.
std::vector<OpsUnderTest> AllOpsOver(int n) {
  std::vector<OpsUnderTest> all;
  all.push_back({"to one", {1, n}, std::make_unique<ReductionToOneDevice>()});
  all.push_back({"collective", {1, n}, *CollectiveAllReduce::Create(3)});
  for (const PackingOptions& packing : kPackers) {
    all.push_back({"copy", {1, n}, *AllReduce::Create({"hierarchical_copy", packing})});
    all.push_back({"nccl", {1, n}, *AllReduce::Create({"nccl", packing, true})});
    for (int towers = 1; towers <= n; ++towers) {
      if (n % towers != 0) continue;
      const Topology topology{n / towers, towers};
      for (const char* spec : {"rechd", "pscpu", "psgpu", "pscpu/pscpu", "nccl/pscpu", "nccl/xring",
                               "nccl/rechd", "collective", "pscpu:40:rechd"}) {
        AddAcrossWorkers(topology, spec, packing, &all);
      }
      if (n > 1) AddAcrossWorkers(topology, "pscpu:8:rechd:400:xring", packing, &all);
    }
  }
  return all;
}

// Element e of value v on device d, before the reduction.
float Element(int v, int d, int64_t e) {
  return static_cast<float>((v * 31 + d * 17 + e * 7) % 101 - 50);
}

class Batch {
 public:
  Batch(const Topology& topology, const std::vector<int64_t>& sizes) {
    for (size_t v = 0; v < sizes.size(); ++v) {
      PerDevice value;
      for (int d = 0; d < topology.num_participants(); ++d) {
        Tensor& tensor = tensors_.emplace_back(DType::kFloat32, Shape({sizes[v]}));
        for (int64_t e = 0; e < sizes[v]; ++e) {
          tensor.as<float>()[e] = Element(static_cast<int>(v), d, e);
        }
        const DeviceId device{d / topology.towers, DeviceKind::kCpu, d % topology.towers};
        value.values.push_back({device, {std::as_const(tensor).view()}});
      }
      pairs_.push_back({value, value});
    }
  }

  absl::Span<const ValueDestinationPair> pairs() const { return pairs_; }

 private:
  std::deque<Tensor> tensors_;
  std::vector<ValueDestinationPair> pairs_;
};

void CheckResults(const std::vector<Mirrored>& results, const std::vector<int64_t>& sizes, int n,
                  Aggregation aggregation) {
  REQUIRE(results.size() == sizes.size());
  for (size_t v = 0; v < sizes.size(); ++v) {
    std::vector<float> expected(sizes[v], 0);
    for (int64_t e = 0; e < sizes[v]; ++e) {
      for (int d = 0; d < n; ++d) expected[e] += Element(static_cast<int>(v), d, e);
      if (aggregation == Aggregation::kMean) expected[e] /= static_cast<float>(n);
    }
    REQUIRE(results[v].copies.size() == static_cast<size_t>(n));
    for (const Mirrored::Copy& copy : results[v].copies) {
      const Tensor& tensor = std::get<Tensor>(copy.value);
      REQUIRE(tensor.num_elements() == sizes[v]);
      if (sizes[v] > 0 && std::memcmp(tensor.data(), expected.data(), tensor.num_bytes()) != 0) {
        FAIL("value " << v << " differs on " << ToString(copy.device));
      }
    }
  }
}

TEST_CASE("every op and packer gives exact sums and means of values of every size") {
  for (int n = 1; n <= 9; ++n) {
    const int64_t edge = 4 * n;
    const std::vector<int64_t> sizes = {0, 1, 97, edge - 1, edge, edge + 1, 0, 1009, 2, 3};
    for (const OpsUnderTest& one : AllOpsOver(n)) {
      INFO(one.name << " over " << one.topology.workers << " x " << one.topology.towers);
      const Batch batch(one.topology, sizes);
      for (const Aggregation aggregation : {Aggregation::kSum, Aggregation::kMean}) {
        const auto results = one.ops->BatchReduce(aggregation, batch.pairs());
        INFO(results.status());
        REQUIRE(results.ok());
        CheckResults(*results, sizes, n, aggregation);
      }
      CHECK(one.ops->TakeWarnings().empty());
    }
  }
}

}  // namespace
}  // namespace lockstep::conformance
