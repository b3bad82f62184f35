#include "worker/strategy/replicated/replicas.h"

#include <catch2/catch.hpp>

#include "tests/support/made_tensors.h"
#include "tests/unit/worker/strategy/replicated/layout_for_tests.h"
#include "worker/collective/local_group_reducer.h"
#include "worker/strategy/replicated/reduction_of_job.h"

namespace lockstep::worker {
namespace {

Tensor Filled(std::vector<float> values) {
  Tensor tensor(DType::kFloat32, Shape({static_cast<int64_t>(values.size())}));
  std::ranges::copy(values, tensor.view().as<float>().begin());
  return tensor;
}

std::vector<float> ValuesOf(const TensorView& view) {
  const std::span<const float> values = view.as<float>();
  return {values.begin(), values.end()};
}

// Momentum 0.5 with learning rate 1, two towers.
struct Fixture {
  Fixture() {
    OptimizerDef optimizer;
    optimizer.mutable_momentum()->set_momentum(0.5f);
    ReplicaState state{.version = GlobalStep(7)};
    for (const std::vector<float>& values :
         {std::vector<float>{1, 2}, {3, 4}, {5, 6}, std::vector<float>{0}}) {
      state.values.push_back(
          made.maker()(DType::kFloat32, Shape({static_cast<int64_t>(values.size())})));
      std::ranges::copy(values, state.values.back().as<float>().begin());
    }
    state.slots.resize(4);
    state.slots[0].push_back(Filled({2, 4}));
    replicas = *Replicas::Create({.towers = 2}, layout, *OptimizerRules::Create(optimizer),
                                 std::move(state), made.maker());
    ChosenReduction chosen = *ReductionOf({}, {.workers = 1, .towers = 2}, ReducedTensors(layout));
    reducer = *LocalGroupReducer::Create(std::move(chosen.reduction));
  }

  void SetGradient(int tower, int variable, std::vector<float> values) {
    const MutableTensorView& to = replicas->memory()[tower].gradients[variable];
    std::ranges::copy(values, to.as<float>().begin());
  }
  void Step() {
    const auto gradients = replicas->gradients();
    reducer->Reduce(replicas->version().value(),
                    absl::MakeConstSpan(gradients.data(), gradients.size()),
                    [](const absl::Status& status) { REQUIRE(status.ok()); });
    replicas->Apply(1.0f, *reducer);
  }
  std::vector<float> Value(int tower, int variable) {
    return ValuesOf(replicas->memory()[tower].values.views[variable]);
  }

  VariableLayout layout = LayoutForTests();
  test::MadeTensors made;
  std::unique_ptr<Replicas> replicas;
  std::unique_ptr<LocalGroupReducer> reducer;
};

TEST_CASE("every tower begins with the same state, and only trained variables are reduced") {
  Fixture f;
  CHECK(std::vector<int>(f.replicas->reduced().begin(), f.replicas->reduced().end()) ==
        std::vector<int>{0});
  for (const int tower : {0, 1}) {
    CHECK(f.Value(tower, 0) == std::vector<float>{1, 2});
    CHECK(f.Value(tower, 2) == std::vector<float>{5, 6});
  }
}

TEST_CASE("a step applies the mean on every tower; statistics stay each tower's own") {
  Fixture f;
  f.SetGradient(0, 0, {1, 2});
  f.SetGradient(1, 0, {3, 6});
  f.SetGradient(0, 1, {10, 11});
  f.SetGradient(1, 1, {20, 21});
  f.Step();
  CHECK(f.replicas->version() == GlobalStep(8));
  // slot = 0.5 * {2, 4} + {2, 4} = {3, 6}; w = {1, 2} - slot.
  for (const int tower : {0, 1}) CHECK(f.Value(tower, 0) == std::vector<float>{-2, -4});
  CHECK(ValuesOf(f.replicas->variable(0).slots()[0]) == std::vector<float>{3, 6});
  CHECK(f.Value(0, 1) == std::vector<float>{10, 11});
  CHECK(f.Value(1, 1) == std::vector<float>{20, 21});
  CHECK(f.Value(0, 2) == std::vector<float>{5, 6});
  // The gradients are still there, to be reduced again.
  CHECK(ValuesOf(f.replicas->gradients()[0][0]) == std::vector<float>{1, 2});
  // Slot = 1.5 + 2, 3 + 4.
  f.Step();
  for (const int tower : {0, 1}) CHECK(f.Value(tower, 0) == std::vector<float>{-5.5, -11});
}

TEST_CASE("what towers copy stays in memory of the maker from version to version") {
  Fixture f;
  std::vector<std::shared_ptr<const Tensor>> held;
  for (int step = 0; step < 5; ++step) {
    for (const TowerMemory& tower : f.replicas->memory()) {
      for (const TensorView& value : tower.values.views) CHECK(f.made.Has(value.data));
      for (const int trained : {0, 1, 3}) CHECK(f.made.Has(tower.gradients[trained].data));
    }
    held.push_back(f.replicas->variable(0).newest());
    for (const int tower : {0, 1}) f.SetGradient(tower, 0, {1, 2});
    f.Step();
  }
}

TEST_CASE("a version that somebody holds stays as it was") {
  Fixture f;
  f.SetGradient(0, 0, {1, 2});
  f.SetGradient(1, 0, {1, 2});
  const std::shared_ptr<const Tensor> held = f.replicas->variable(0).newest();
  f.Step();
  f.Step();
  CHECK(ValuesOf(held->view()) == std::vector<float>{1, 2});
}

TEST_CASE("a state without the rule's numbers is refused") {
  OptimizerDef optimizer;
  optimizer.mutable_adam();
  const VariableLayout layout = LayoutForTests();
  const auto replicas = Replicas::Create({}, layout, *OptimizerRules::Create(optimizer), {});
  CHECK(absl::IsInvalidArgument(replicas.status()));
}

}  // namespace
}  // namespace lockstep::worker
