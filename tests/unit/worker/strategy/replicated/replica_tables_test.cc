// Tables under replicated: rows in, shares out, the same version on every tower.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/made_tensors.h"
#include "worker/collective/local_group_reducer.h"
#include "worker/strategy/replicated/reduction_of_job.h"
#include "worker/strategy/replicated/replicas.h"

namespace lockstep::worker {
namespace {

using Values = std::vector<float>;

constexpr int kTowers = 2;

// "w" of two elements, between a frozen table and a trained one of 4 rows of 2, and the loss.
VariableLayout Layout() {
  Placement placement;
  placement.set_shards(1);
  const auto add = [&](const std::string& name, std::vector<int64_t> dims) {
    VariableSpec* spec = placement.add_variables();
    spec->set_id(static_cast<uint32_t>(placement.variables_size() - 1));
    spec->set_name(name);
    spec->set_dtype(FLOAT32);
    spec->mutable_dims()->Add(dims.begin(), dims.end());
    return spec;
  };
  for (const char* const name : {"fixed", "table"}) {
    VariableSpec* const table = add(name, {4, 2});
    table->set_trainable(true);
    table->set_sparse(true);
    table->set_frozen(name == std::string("fixed"));
    if (placement.variables_size() == 1) add("w", {2})->set_trainable(true);
  }
  add("loss", {1});
  return *VariableLayout::Create(placement);
}

Tensor Filled(const Shape& shape, float first) {
  Tensor tensor(DType::kFloat32, shape);
  for (float& element : tensor.view().as<float>()) element = first++;
  return tensor;
}

Values ValuesOf(const TensorView& view) {
  const std::span<const float> values = view.as<float>();
  return {values.begin(), values.end()};
}

enum Index { kFixed, kW, kTable, kLoss };

struct Fixture {
  explicit Fixture(const OptimizerDef& optimizer, bool average = true) {
    const std::vector<int64_t> most_rows = {3, 0, 3, 0};
    ReplicaState state{.version = GlobalStep(7)};
    for (const WholeVariable& variable : layout.variables()) {
      state.values.push_back(Filled(variable.shape, 10));
    }
    OptimizerRules rules = *OptimizerRules::Create(optimizer);
    state.slots.resize(4);
    for (const int variable : {kW, kTable}) {
      for (size_t i = 0; i < rules.plain().slots().size(); ++i) {
        Tensor& slot =
            state.slots[variable].emplace_back(DType::kFloat32, layout.variables()[variable].shape);
        std::ranges::fill(slot.view().as<float>(), 0.0f);
      }
    }
    for (const ScalarSpec& scalar : rules.plain().scalars()) {
      state.scalars.push_back(scalar.initial_value);
    }
    replicas = *Replicas::Create({.towers = kTowers, .most_rows = most_rows, .average = average},
                                 layout, std::move(rules), std::move(state), made.maker());
    StrategyDef::Replicated def;
    def.set_average(average);
    reducer = *LocalGroupReducer::Create(
        ReductionOf(def, {.towers = kTowers}, ReducedTensors(layout, most_rows))->reduction);
  }

  void ReadRows(std::vector<int64_t> fixed_rows, std::vector<int64_t> table_rows) {
    rows = {std::move(fixed_rows), {}, std::move(table_rows), {}};
    views.assign(rows.begin(), rows.end());
    replicas->ReadRows(views);
  }
  void SetGradient(int tower, int variable, const Values& values) {
    const MutableTensorView& to = replicas->memory()[tower].gradients[variable];
    REQUIRE(to.num_elements() == static_cast<int64_t>(values.size()));
    std::ranges::copy(values, to.as<float>().begin());
  }
  void Reduce() {
    const auto gradients = replicas->gradients();
    reducer->Reduce(replicas->version().value(),
                    absl::MakeConstSpan(gradients.data(), gradients.size()),
                    [](const absl::Status& status) { REQUIRE(status.ok()); });
  }
  Values Value(int tower, int variable) const {
    return ValuesOf(replicas->memory()[tower].values.views[variable]);
  }

  const VariableLayout layout = Layout();
  const test::MadeTensors made;
  std::unique_ptr<Replicas> replicas;
  std::unique_ptr<LocalGroupReducer> reducer;
  std::vector<std::vector<int64_t>> rows;
  std::vector<std::span<const int64_t>> views;
};

OptimizerDef Sgd() {
  OptimizerDef optimizer;
  optimizer.mutable_sgd();
  return optimizer;
}

TEST_CASE("towers get the rows that the batches read, of frozen tables too") {
  Fixture f(Sgd());
  f.ReadRows({3}, {0, 2});
  for (int tower = 0; tower < kTowers; ++tower) {
    CHECK(f.Value(tower, kFixed) == Values{16, 17});
    CHECK(f.Value(tower, kW) == Values{10, 11});
    CHECK(f.Value(tower, kTable) == Values{10, 11, 14, 15});
    CHECK(f.replicas->memory()[tower].values.rows.data() == f.views.data());
    for (const int table : {kFixed, kTable}) {
      CHECK(f.made.Has(f.replicas->memory()[tower].values.views[table].data));
    }
    CHECK(f.made.Has(f.replicas->memory()[tower].gradients[kTable].data));
    CHECK(f.replicas->memory()[tower].gradients[kTable].shape == Shape({2, 2}));
  }
  // Dense ones before tables.
  CHECK(std::ranges::equal(f.replicas->reduced(), std::vector<int>{kW, kTable}));
}

TEST_CASE("every tower applies the rows of all, clipped, whatever was reduced before") {
  const bool average = GENERATE(true, false);
  Fixture f(Sgd(), average);
  const float share = average ? 0.5f : 1.0f;
  // Twice: a group that is made anew reduces the same gradients again.
  f.ReadRows({}, {0, 2});
  f.SetGradient(0, kTable, {1, 2, 0, 4});
  f.SetGradient(1, kTable, {3, 4, 0, 0});
  f.SetGradient(0, kW, {1, 1});
  f.SetGradient(1, kW, {1, 3});
  f.Reduce();
  f.Reduce();
  f.replicas->Apply(1.0f, *f.reducer, {ClippingKind::kValue, 2.5f});
  CHECK(f.replicas->version() == GlobalStep(8));
  const auto clipped = [share](float sum) { return std::min(sum * share, 2.5f); };
  const Values rows = {10 - clipped(4), 11 - clipped(6), 12, 13, 14, 15 - clipped(4)};
  f.ReadRows({}, {0, 1, 2});
  for (int tower = 0; tower < kTowers; ++tower) {
    CHECK(f.Value(tower, kTable) == rows);
    CHECK(f.Value(tower, kW) == Values{10 - clipped(2), 11 - clipped(4)});
  }
}

TEST_CASE("a rule that moves every row moves those without a gradient, a lazy one does not") {
  const bool lazy = GENERATE(false, true);
  OptimizerDef optimizer;
  optimizer.mutable_adam()->set_lazy(lazy);
  Fixture f(optimizer);
  const auto step = [&f](std::vector<int64_t> rows) {
    f.ReadRows({}, std::move(rows));
    for (int tower = 0; tower < kTowers; ++tower) {
      f.SetGradient(tower, kTable, {1, 1});
      f.SetGradient(tower, kW, {1, 1});
    }
    f.Reduce();
    f.replicas->Apply(0.1f, *f.reducer);
  };
  step({1});
  const Values before = ValuesOf(f.replicas->variable(kTable).newest()->view());
  CHECK(before[2] < 12);
  CHECK(before[4] == 14);
  step({2});
  const Values after = ValuesOf(f.replicas->variable(kTable).newest()->view());
  CHECK((after[2] == before[2]) == lazy);
  CHECK(after[4] < 14);
}

}  // namespace
}  // namespace lockstep::worker
