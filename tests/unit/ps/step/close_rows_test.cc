// A variable whose gradients are sparse: from packed rows to its next value.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "common/optimizer/adam.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/sgd.h"
#include "ps/step/close_variable.h"

namespace lockstep::ps {
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

class Table {
 public:
  Table(std::unique_ptr<const UpdateRule> rule, const std::vector<float>& values)
      : rule_(std::move(rule)),
        variable_("table", true, Column(values), GlobalStep(0), SlotsOf(*rule_, values.size())),
        accumulator_(DType::kFloat32, PartialShape(), Reduction::kMean) {
    for (const ScalarSpec& spec : rule_->scalars()) scalars_.push_back(spec.initial_value);
  }

  // One step; what its rows are said to have changed.
  std::optional<std::vector<int64_t>> Step(const std::vector<Rows>& gradients, float rate = 1) {
    Closing closing{0, variable_.newest_version(), 1, rate, {}};
    uint32_t worker = 0;
    for (const Rows& rows : gradients) {
      closing.gradients.push_back({WorkerIndex(worker++), PushSeq(1), closing.step, Packed(rows)});
    }
    variable_.DropPrevious().reset();
    const auto in_one_range = [](size_t count, size_t,
                                 absl::FunctionRef<void(size_t, size_t)> work) { work(0, count); };
    NextValue next =
        ComputeNextValue(closing, *rule_, scalars_, in_one_range, &variable_, &accumulator_);
    const auto changed = next.changed_rows;
    variable_.Publish(std::move(next));
    rule_->AdvanceScalars(absl::MakeSpan(scalars_));
    return changed;
  }
  std::vector<float> value() const { return Values(variable_.newest()->view()); }
  std::vector<float> slot(int i) const { return Values(variable_.slots()[i]); }

 private:
  static std::vector<Tensor> SlotsOf(const UpdateRule& rule, size_t rows) {
    std::vector<Tensor> slots;
    for (const SlotSpec& spec : rule.slots()) {
      slots.push_back(Column(std::vector<float>(rows, spec.initial_value)));
    }
    return slots;
  }

  const std::unique_ptr<const UpdateRule> rule_;
  Variable variable_;
  SparseAccumulator accumulator_;
  std::vector<float> scalars_;
};

TEST_CASE("rows move by the mean of the gradients that name them, others stay") {
  Table table(MakeSgd(), {10, 20, 30, 40});
  const auto changed = table.Step({{{0, 2}, {2, 4}}, {{2, 8}}});
  CHECK(table.value() == std::vector<float>{8, 20, 24, 40});
  CHECK(changed == std::vector<int64_t>{0, 2});
  table.Step({{{3, 1}}, {}});
  CHECK(table.value() == std::vector<float>{8, 20, 24, 39});
  table.Step({{}});
  CHECK(table.value() == std::vector<float>{8, 20, 24, 39});
}

TEST_CASE("a row that the accumulator leaves several times is summed, whatever the rule") {
  // TensorFlow's table: rows 1, 1 with counts 2, 1 and means 5.5, 2 give 7.5.
  Table sgd(MakeSgd(), {0, 0, 0});
  sgd.Step({{{1, 1}, {1, 2}}, {{1, 10}}});
  CHECK(sgd.value() == std::vector<float>{0, -7.5, 0});
  Table momentum(MakeMomentum({0.5f, false}), {0, 0, 0});
  momentum.Step({{{1, 1}, {1, 2}}, {{1, 10}}});
  CHECK(momentum.slot(0) == std::vector<float>{0, 7.5, 0});
  CHECK(momentum.value() == std::vector<float>{0, -7.5, 0});
  // {5:1, 2:2} then {2:10, 5:20}: 12 for row 2, 10.5 for row 5.
  Table unsorted(MakeMomentum({0.5f, false}), std::vector<float>(6, 0));
  unsorted.Step({{{5, 1}, {2, 2}}, {{2, 10}, {5, 20}}});
  CHECK(unsorted.slot(0) == std::vector<float>{0, 0, 12, 0, 0, 10.5});
}

TEST_CASE("slots of rows without a gradient stay with a lazy rule and move with a full one") {
  Table momentum(MakeMomentum({0.5f, false}), {0, 0});
  momentum.Step({{{0, 1}, {1, 1}}});
  momentum.Step({{{1, 1}}});
  CHECK(momentum.slot(0) == std::vector<float>{1, 1.5});
  CHECK(momentum.value() == std::vector<float>{-1, -2.5});

  Table adam(MakeAdam({.beta1 = 0.5f, .beta2 = 0.5f}), {0, 0});
  adam.Step({{{0, 1}, {1, 1}}});
  const float before = adam.value()[0];
  CHECK_FALSE(adam.Step({{{1, 1}}}).has_value());
  CHECK(adam.slot(0)[0] == 0.25f);
  CHECK(adam.value()[0] < before);
}

TEST_CASE("many steps over few rows are the same as over a table that is copied each time") {
  Table table(MakeMomentum({0.25f, false}), std::vector<float>(16, 1));
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

}  // namespace
}  // namespace lockstep::ps
