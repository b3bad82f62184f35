// Where elements go, and that they come back.
#include "worker/collective/packers.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace lockstep::worker {
namespace {

std::vector<TensorSpec> Floats(const std::vector<int64_t>& sizes) {
  std::vector<TensorSpec> specs;
  for (const int64_t size : sizes) {
    specs.push_back({"v" + std::to_string(specs.size()), DType::kFloat32, Shape({size})});
  }
  return specs;
}

std::vector<int64_t> Elements(const PackingPlan& plan) {
  std::vector<int64_t> elements;
  for (const ReductionVector& vector : plan.vectors()) elements.push_back(vector.elements);
  return elements;
}

// Number of tensors in each pack.
std::vector<size_t> GroupSizes(const PackingPlan& plan) {
  std::vector<size_t> sizes;
  for (const ReductionVector& vector : plan.vectors()) {
    if (vector.is_pack) sizes.push_back(vector.segments.size());
  }
  return sizes;
}

// Every element has its own number; packing and unpacking must return each to its place.
void CheckRoundTrip(const PackingPlan& plan, const std::vector<TensorSpec>& specs) {
  std::vector<Tensor> from;
  std::vector<Tensor> to;
  float next = 1;
  for (const TensorSpec& spec : specs) {
    from.push_back(Tensor(spec.dtype, *spec.shape));
    to.push_back(Tensor::Zeros(spec.dtype, *spec.shape));
    for (float& element : from.back().as<float>()) element = next++;
  }
  std::vector<TensorView> sources;
  std::vector<MutableTensorView> targets;
  for (Tensor& tensor : from) sources.push_back(tensor.view());
  for (Tensor& tensor : to) targets.push_back(tensor.view());
  int64_t elements = 0;
  for (const ReductionVector& vector : plan.vectors()) {
    Tensor pack(vector.dtype, Shape({vector.elements}));
    Pack(vector, sources, pack.view());
    Unpack(vector, pack.view(), targets);
    elements += vector.elements;
    if (!vector.is_pack) CHECK(vector.segments.size() == 1);
  }
  CHECK(elements == static_cast<int64_t>(next) - 1);
  for (size_t i = 0; i < from.size(); ++i) {
    CHECK(std::ranges::equal(from[i].as<float>(), to[i].as<float>()));
  }
}

void CheckRefused(const absl::Status& status, const std::string& words) {
  INFO(status);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains(words));
}

TEST_CASE("concatenate and split makes equal packs and a longer last one") {
  const auto specs = Floats({3, 0, 5, 2});
  const auto plan = ConcatAndSplitPacker::Create(3)->Plan(specs);
  REQUIRE(plan.ok());
  CHECK(Elements(*plan) == std::vector<int64_t>{3, 3, 4});
  CHECK(plan->num_packs() == 3);
  CHECK(plan->vectors()[2].segments == std::vector<PackedSegment>{{2, 3, 2}, {3, 0, 2}});
  CheckRoundTrip(*plan, specs);
}

TEST_CASE("concatenate and split leaves packs empty where elements are fewer") {
  for (const auto& sizes :
       {std::vector<int64_t>{}, {0}, {0, 0, 0}, {2}, {1, 1, 1}, {0, 7, 0}, {1, 0, 2, 0}}) {
    for (const int packs : {1, 2, 3, 4, 9}) {
      const auto specs = Floats(sizes);
      const auto plan = ConcatAndSplitPacker::Create(packs)->Plan(specs);
      REQUIRE(plan.ok());
      const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
      CHECK(plan->num_packs() == packs);
      CHECK(plan->vectors()[0].elements == (packs == 1 ? total : total / packs));
      CheckRoundTrip(*plan, specs);
    }
  }
}

TEST_CASE("small tensors merge in runs of at most max_group neighbours") {
  const auto plan =
      AggregateSmallTensorPacker::Create(1024, 10)->Plan(Floats(std::vector<int64_t>(40, 8)));
  CHECK(GroupSizes(*plan) == std::vector<size_t>{10, 10, 10, 10});
  const auto odd =
      AggregateSmallTensorPacker::Create(1024, 10)->Plan(Floats(std::vector<int64_t>(11, 8)));
  CHECK(GroupSizes(*odd) == std::vector<size_t>{10});
  CHECK(odd->vectors().size() == 2);
  const auto alone = AggregateSmallTensorPacker::Create(1024, 1)->Plan(Floats({8, 8, 8}));
  CHECK(alone->num_packs() == 0);
}

TEST_CASE("the limit of a small tensor is inclusive, and a lone one is not packed") {
  auto specs = Floats({256, 257, 256, 256, 1, 300, 2});
  specs[4].dtype = DType::kFloat64;
  const auto plan = AggregateSmallTensorPacker::Create(1024, 10)->Plan(specs);
  REQUIRE(plan.ok());
  CHECK(plan->num_packs() == 1);
  CHECK(plan->vectors()[0].segments == std::vector<PackedSegment>{{2, 0, 256}, {3, 0, 256}});
  std::vector<int> alone;
  for (const auto& vector : plan->vectors().subspan(1)) {
    CHECK_FALSE(vector.is_pack);
    alone.push_back(vector.segments[0].tensor);
  }
  CHECK(alone == std::vector<int>{0, 1, 4, 5, 6});
}

TEST_CASE("small tensors of any sizes come back") {
  const auto specs = Floats({1, 2, 0, 900, 3, 4, 900, 5});
  CheckRoundTrip(*AggregateSmallTensorPacker::Create(400, 2)->Plan(specs), specs);
  CheckRoundTrip(*AggregateSmallTensorPacker::Create()->Plan(specs), specs);
}

TEST_CASE("a gradient packer goes on without packs where they cannot be") {
  const auto packs = [](const std::vector<TensorSpec>& specs, int n) {
    const auto packer = GradientPacker::Create(specs, n);
    REQUIRE(packer.ok());
    CHECK(packer->Check(specs).ok());
    return packer->plan() == nullptr ? 0 : packer->plan()->num_packs();
  };
  CHECK(packs(Floats({8192}), 8) == 8);
  CHECK(packs(Floats({8191}), 8) == 0);
  CHECK(packs({}, 8) == 0);
  auto unknown = Floats({9000, 9000});
  unknown[1].shape.reset();
  CHECK(packs(unknown, 8) == 0);
  auto mixed = Floats({9000, 9000});
  mixed[1].dtype = DType::kFloat64;
  CHECK(packs(mixed, 8) == 0);
  CheckRefused(GradientPacker::Create({}, 0).status(), "expected at least 1, got 0");
}

TEST_CASE("a gradient packer refuses tensors that it did not plan") {
  const auto packer = GradientPacker::Create(Floats({9000, 10}), 2);
  CheckRefused(packer->Check(Floats({9000})), "planned for 2 gradients, got 1");
  CheckRefused(packer->Check(Floats({9000, 11})), "v1 float32 [10], got v1 float32 [11]");
}

TEST_CASE("the fields of an all-reduce choose the packer") {
  const auto specs = Floats({10, 10, 10});
  CHECK(PlanPacking(PackingOptions(), specs)->vectors().size() == 1);
  CHECK(PlanPacking(PackingOptions::ForMultiWorker(), specs)->num_packs() == 0);
  CHECK(PlanPacking({0, 40, 2}, specs)->vectors().size() == 2);
  CHECK(PlanPacking({0, 39, 2}, specs)->num_packs() == 0);
  CHECK(PlanPacking({0, 40, 0}, specs)->num_packs() == 0);
  CHECK(PlanPacking({-1, 40, 2}, specs)->num_packs() == 1);
}

TEST_CASE("packers refuse values below one, unknown shapes and mixed dtypes") {
  CheckRefused(ConcatAndSplitPacker::Create(0).status(), "num_packs");
  CheckRefused(AggregateSmallTensorPacker::Create(0, 1).status(), "agg_small_grads_max_bytes");
  CheckRefused(AggregateSmallTensorPacker::Create(1, -1).status(), "agg_small_grads_max_group");
  auto specs = Floats({4, 4});
  specs[1].dtype = DType::kFloat64;
  CheckRefused(ConcatAndSplitPacker::Create(1)->Plan(specs).status(), "float64 of v1");
  specs[1].shape.reset();
  CheckRefused(ConcatAndSplitPacker::Create(1)->Plan(specs).status(),
               "Shape is unknown for node v1");
  CheckRefused(PlanPacking({0, 40, 2}, specs).status(), "Shape is unknown for node v1");
  CheckRefused(PlanPacking({0, 0, 0}, specs).status(), "Shape is unknown for node v1");
}

}  // namespace
}  // namespace lockstep::worker
