// A variable whose gradients are sparse: from packed rows to its next value.
#include "common/update/sparse_update.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "common/optimizer/adam.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/sgd.h"
#include "common/update/gradient.h"

namespace lockstep {
namespace {

using Rows = std::vector<std::pair<int64_t, float>>;

Tensor Column(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, Shape({static_cast<int64_t>(values.size()), 1}));
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

std::vector<float> Values(TensorView tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

Tensor Packed(const Rows& rows) {
  Tensor packed(DType::kUInt8, Shape({static_cast<int64_t>(rows.size() * 12)}));
  auto* bytes = static_cast<std::byte*>(packed.data());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(bytes + 8 * i, &rows[i].first, 8);
    std::memcpy(bytes + 8 * rows.size() + 4 * i, &rows[i].second, 4);
  }
  return packed;
}

class Trained {
 public:
  Trained(std::unique_ptr<const UpdateRule> rule, const std::vector<float>& values)
      : rule_(std::move(rule)), variable_(MakeVariable(*rule_, values)) {
    for (const ScalarSpec& spec : rule_->scalars()) scalars_.push_back(spec.initial_value);
  }

  void Step(const std::vector<Rows>& gradients, float rate = 1) {
    std::vector<Gradient> held;
    std::vector<IndexedSlicesView> views;
    for (const Rows& rows : gradients) held.push_back({Packed(rows)});
    for (const Gradient& gradient : held) {
      views.push_back(SlicesOf(gradient, variable_->dtype(), variable_->shape()));
    }
    variable_->DropPrevious().reset();
    // Ranges in the order that is opposite to the rows'.
    const auto run = [](size_t count, size_t, absl::FunctionRef<void(size_t, size_t)> work) {
      work(count / 2, count);
      work(0, count / 2);
    };
    SparseUpdate update(variable_->newest_version(), rate, *rule_, scalars_, variable_.get());
    variable_->Publish(update.Make(views, run));
    rule_->AdvanceScalars(absl::MakeSpan(scalars_));
  }
  std::vector<float> value() const { return Values(variable_->newest()->view()); }
  // Of the version before the newest; of a table.
  std::vector<float> previous() const {
    Tensor copy(DType::kFloat32, variable_->shape());
    const GlobalStep version(variable_->newest_version().value() - 1);
    REQUIRE(variable_->table()->CopyBytes(version, 0, copy.view().bytes()));
    return Values(copy.view());
  }
  std::vector<float> slot(int i) const { return Values(variable_->slots()[i]); }

 private:
  static std::vector<Tensor> SlotsOf(const UpdateRule& rule, size_t rows) {
    std::vector<Tensor> slots;
    for (const SlotSpec& spec : rule.slots()) {
      slots.push_back(Column(std::vector<float>(rows, spec.initial_value)));
    }
    return slots;
  }

  // A table where it can be one.
  static std::unique_ptr<Variable> MakeVariable(const UpdateRule& rule,
                                                const std::vector<float>& values) {
    std::vector<Tensor> slots = SlotsOf(rule, values.size());
    if (!rule.TouchesOnlyRows()) {
      return std::make_unique<Variable>("table", true, Column(values), GlobalStep(0),
                                        std::move(slots));
    }
    auto table = std::make_shared<Table>(Column(values), GlobalStep(0), Table::kPrevious, nullptr);
    return std::make_unique<Variable>("table", std::move(table), GlobalStep(0), std::move(slots));
  }

  const std::unique_ptr<const UpdateRule> rule_;
  const std::unique_ptr<Variable> variable_;
  std::vector<float> scalars_;
};

TEST_CASE("rows move by the mean of the gradients that name them, others stay") {
  Trained table(MakeSgd(), {10, 20, 30, 40});
  table.Step({{{0, 2}, {2, 4}}, {{2, 8}}});
  CHECK(table.value() == std::vector<float>{8, 20, 24, 40});
  CHECK(table.previous() == std::vector<float>{10, 20, 30, 40});
  table.Step({{{3, 1}}, {}});
  CHECK(table.value() == std::vector<float>{8, 20, 24, 39});
  table.Step({{}});
  CHECK(table.value() == std::vector<float>{8, 20, 24, 39});
}

TEST_CASE("a row that the accumulator leaves several times is summed, whatever the rule") {
  // TensorFlow's table: rows 1, 1 with counts 2, 1 and means 5.5, 2 give 7.5.
  Trained sgd(MakeSgd(), {0, 0, 0});
  sgd.Step({{{1, 1}, {1, 2}}, {{1, 10}}});
  CHECK(sgd.value() == std::vector<float>{0, -7.5, 0});
  CHECK(sgd.previous() == std::vector<float>{0, 0, 0});
  Trained momentum(MakeMomentum({0.5f, false}), {0, 0, 0});
  momentum.Step({{{1, 1}, {1, 2}}, {{1, 10}}});
  CHECK(momentum.slot(0) == std::vector<float>{0, 7.5, 0});
  CHECK(momentum.value() == std::vector<float>{0, -7.5, 0});
  // {5:1, 2:2} then {2:10, 5:20}: 12 for row 2, 10.5 for row 5.
  Trained unsorted(MakeMomentum({0.5f, false}), std::vector<float>(6, 0));
  unsorted.Step({{{5, 1}, {2, 2}}, {{2, 10}, {5, 20}}});
  CHECK(unsorted.slot(0) == std::vector<float>{0, 0, 12, 0, 0, 10.5});
}

TEST_CASE("slots of rows without a gradient stay with a lazy rule and move with a full one") {
  Trained momentum(MakeMomentum({0.5f, false}), {0, 0});
  momentum.Step({{{0, 1}, {1, 1}}});
  momentum.Step({{{1, 1}}});
  CHECK(momentum.slot(0) == std::vector<float>{1, 1.5});
  CHECK(momentum.value() == std::vector<float>{-1, -2.5});

  Trained adam(MakeAdam({.beta1 = 0.5f, .beta2 = 0.5f}), {0, 0});
  adam.Step({{{0, 1}, {1, 1}}});
  const float before = adam.value()[0];
  adam.Step({{{1, 1}}});
  CHECK(adam.slot(0)[0] == 0.25f);
  CHECK(adam.value()[0] < before);
}

TEST_CASE("many steps over few rows are the same as over a table that is copied each time") {
  Trained table(MakeMomentum({0.25f, false}), std::vector<float>(16, 1));
  std::vector<float> value(16, 1);
  std::vector<float> slot(16, 0);
  for (int step = 0; step < 50; ++step) {
    const int64_t row = step * 7 % 16;
    table.Step({{{row, 2}}}, 0.5f);
    slot[row] = slot[row] * 0.25f + 2;
    value[row] -= slot[row] * 0.5f;
    REQUIRE(table.value() == value);
  }
}

// What every rule makes of many steps, by its accumulator and straight from the gradients.
TEST_CASE(
    "gradients that need no merging have the same bits as those that the accumulator merged") {
  constexpr int64_t kRows = 40;
  const auto make = [] {
    return std::make_unique<Trained>(MakeAdam({.lazy = true}), std::vector<float>(kRows, 1));
  };
  const auto straight = make();
  const auto merged = make();
  for (int step = 0; step < 20; ++step) {
    std::vector<Rows> gradients(3);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int worker = 0; worker < 3; ++worker) {
        if ((row * 7 + worker * 5 + step) % 3 == 0) continue;
        gradients[worker].emplace_back(row, 0.1f * static_cast<float>(row - worker * step));
      }
    }
    straight->Step(gradients);
    // With a row that comes twice they take the other way.
    gradients.back().emplace_back(gradients.back().back().first, 0.0f);
    merged->Step(gradients);
    REQUIRE(straight->value() == merged->value());
    REQUIRE(straight->slot(0) == merged->slot(0));
    REQUIRE(straight->slot(1) == merged->slot(1));
    REQUIRE(straight->previous() == merged->previous());
  }
}

}  // namespace
}  // namespace lockstep
