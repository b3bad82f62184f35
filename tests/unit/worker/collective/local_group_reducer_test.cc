#include "worker/collective/local_group_reducer.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "tests/conformance/collective_cases.h"
#include "tests/support/allocation_counter.h"
#include "worker/collective/all_reduce.h"
#include "worker/collective/batch_plan.h"

namespace lockstep::worker {
namespace {

using conformance::DrawVectors;

std::vector<TensorSpec> Specs(const std::vector<int64_t>& lengths) {
  std::vector<TensorSpec> specs;
  for (const int64_t length : lengths) {
    specs.push_back({absl::StrCat("t", specs.size()), DType::kFloat32, Shape({length})});
  }
  return specs;
}

struct Gradients {
  std::vector<std::vector<Tensor>> memory;
  std::vector<std::vector<TensorView>> views;  // by tower and tensor
  std::vector<std::vector<MutableTensorView>> mutable_views;
};

Gradients Draw(const std::vector<TensorSpec>& specs, int towers) {
  Gradients gradients;
  gradients.memory.resize(towers);
  gradients.views.resize(towers);
  gradients.mutable_views.resize(towers);
  for (size_t i = 0; i < specs.size(); ++i) {
    std::vector<Tensor> drawn =
        DrawVectors(DType::kFloat32, towers, specs[i].shape->num_elements(), i + 1);
    for (int tower = 0; tower < towers; ++tower) {
      gradients.memory[tower].push_back(std::move(drawn[tower]));
    }
  }
  for (int tower = 0; tower < towers; ++tower) {
    for (Tensor& tensor : gradients.memory[tower]) {
      gradients.views[tower].push_back(tensor.view());
      gradients.mutable_views[tower].push_back(tensor.view());
    }
  }
  return gradients;
}

GroupReduction Reduction(const std::vector<TensorSpec>& specs, int towers, int num_packs) {
  const PackingPlan packing = PlanPacking({num_packs, 1 << 20, 3}, specs).value();
  const ScheduleSpec spec{ReductionAlgorithm::kCollective, {1, towers}};
  return {{1, towers}, specs, MakeBatchPlan(packing, spec).value()};
}

TEST_CASE("the towers of one worker get the bits of RunBatchInMemory with every packing") {
  const std::vector<TensorSpec> specs = Specs({5, 0, 1, 97, 3, 3, 3, 3, 1024});
  for (const int towers : {1, 2, 3, 4}) {
    for (const int num_packs : {0, 1, 3, 7}) {
      const GroupReduction reduction = Reduction(specs, towers, num_packs);
      Gradients gradients = Draw(specs, towers);
      auto reducer = LocalGroupReducer::Create(reduction);
      REQUIRE(reducer.ok());
      int calls = 0;
      for (int step = 0; step < 2; ++step) {
        (*reducer)->Reduce(step, gradients.views, [&](absl::Status status) {
          CHECK(status.ok());
          ++calls;
        });
      }
      CHECK(calls == 2);
      RunBatchInMemory(reduction.plan, gradients.mutable_views, towers);
      for (int tower = 0; tower < towers; ++tower) {
        for (size_t i = 0; i < specs.size(); ++i) {
          const TensorView got = (*reducer)->tensor(tower, static_cast<int>(i));
          const TensorView& expected = gradients.views[tower][i];
          REQUIRE(got.num_bytes() == expected.num_bytes());
          if (got.num_bytes() == 0) continue;
          REQUIRE(std::memcmp(got.data, expected.data, got.num_bytes()) == 0);
        }
      }
      CHECK((*reducer)->traffic().across == Traffic());
    }
  }
}

TEST_CASE("a gradient in the reducer's own memory is reduced where it is") {
  const std::vector<TensorSpec> specs = Specs({4});
  GroupReduction reduction = Reduction(specs, 2, 0);
  reduction.average = false;
  const auto reducer = LocalGroupReducer::Create(reduction).value();
  std::vector<std::vector<TensorView>> views(2);
  for (int tower = 0; tower < 2; ++tower) {
    const MutableTensorView view = reducer->tensor(tower, 0);
    for (float& element : view.as<float>()) element = static_cast<float>(tower + 1);
    views[tower].push_back(view);
  }
  reducer->Reduce(0, views, [](absl::Status status) { CHECK(status.ok()); });
  for (int tower = 0; tower < 2; ++tower) {
    for (const float element : TensorView(reducer->tensor(tower, 0)).as<float>()) {
      CHECK(element == 3);
    }
  }
}

TEST_CASE("a steady step allocates nothing") {
  const std::vector<TensorSpec> specs = Specs({100, 7, 5000});
  const auto reducer = LocalGroupReducer::Create(Reduction(specs, 3, 2)).value();
  Gradients gradients = Draw(specs, 3);
  const auto reduce = [&] { reducer->Reduce(0, gradients.views, [](absl::Status) {}); };
  reduce();
  CHECK(test::AllocationsOf(reduce).all == 0);
}

TEST_CASE("after Cancel every reduction ends with its reason") {
  const std::vector<TensorSpec> specs = Specs({4});
  const auto reducer = LocalGroupReducer::Create(Reduction(specs, 2, 0)).value();
  Gradients gradients = Draw(specs, 2);
  reducer->Cancel(absl::AbortedError("view 2 replaces view 1"));
  reducer->Cancel(absl::CancelledError("later"));
  absl::Status ended;
  reducer->Reduce(0, gradients.views, [&](absl::Status status) { ended = status; });
  CHECK(ended == absl::AbortedError("view 2 replaces view 1"));
}

TEST_CASE("another thread may cancel while reductions run") {
  const std::vector<TensorSpec> specs = Specs({4});
  const auto reducer = LocalGroupReducer::Create(Reduction(specs, 2, 0)).value();
  Gradients gradients = Draw(specs, 2);
  std::thread canceller([&] { reducer->Cancel(absl::CancelledError("told to stop")); });
  absl::Status ended;
  while (ended.ok()) {
    reducer->Reduce(0, gradients.views, [&](absl::Status status) { ended = std::move(status); });
  }
  CHECK(ended == absl::CancelledError("told to stop"));
  canceller.join();
}

TEST_CASE("a gathered tensor that is packed, or has unequal shares, is refused") {
  std::vector<TensorSpec> specs = Specs({4, 6});
  GroupReduction packed = Reduction(specs, 2, 1);
  packed.tensors[1].shares = 2;
  CHECK_THAT(std::string(LocalGroupReducer::Create(packed).status().message()),
             Catch::Matchers::Contains("t1") && Catch::Matchers::Contains("in a pack"));
  GroupReduction unequal = Reduction(specs, 2, 0);
  unequal.tensors[1].shares = 4;
  CHECK_THAT(std::string(LocalGroupReducer::Create(unequal).status().message()),
             Catch::Matchers::Contains("divides into 4 shares, got 6 elements"));
}

TEST_CASE("a reduction over several workers is refused") {
  GroupReduction reduction = Reduction(Specs({4}), 2, 0);
  reduction.topology = {2, 1};
  CHECK(LocalGroupReducer::Create(reduction).status().message() ==
        "reduction within a worker: expected 1, got 2 workers");
}

}  // namespace
}  // namespace lockstep::worker
