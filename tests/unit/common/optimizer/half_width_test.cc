// Gradients of half the width, and values that are written in half the width beside float32.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "common/optimizer/ftrl.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/vector_target.h"
#include "tests/unit/common/optimizer/all_rules.h"

namespace lockstep {
namespace {

constexpr int64_t kCount = 1100;

Tensor RandomFloats(std::mt19937* random) {
  std::uniform_real_distribution<float> ordinary(.1f, 3);
  Tensor tensor(DType::kFloat32, Shape({kCount}));
  for (float& element : tensor.as<float>()) element = ordinary(*random);
  return tensor;
}

bool AreSame(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), a.num_bytes()) == 0;
}

// A variable before an update and after.
struct Updated {
  Updated(const UpdateRule& rule, std::mt19937* random)
      : before(RandomFloats(random)), after(DType::kFloat32, Shape({kCount})) {
    for (size_t i = 0; i < rule.slots().size(); ++i) slots.push_back(RandomFloats(random));
  }
  Updated Clone() const { return Updated(*this); }

  // `change` has the last word.
  void Apply(const UpdateRule& rule, const std::vector<TensorView>& gradients,
             const std::function<void(Update*)>& change) {
    const std::vector<float> scalars = InitialScalars(rule);
    std::vector<MutableTensorView> views;
    for (Tensor& slot : slots) views.push_back(slot.view());
    Update update{.old_value = before.view(),
                  .gradients = gradients,
                  .divisor = static_cast<int>(gradients.size()),
                  .new_value = after.view(),
                  .slots = views,
                  .learning_rate = .3f,
                  .scalars = scalars,
                  .version = 1};
    change(&update);
    rule.Apply(update);
  }

  Tensor before;
  Tensor after;
  std::vector<Tensor> slots;

 private:
  Updated(const Updated& other) : before(other.before.Clone()), after(other.after.Clone()) {
    for (const Tensor& slot : other.slots) slots.push_back(slot.Clone());
  }
};

void CheckRule(const test::NamedRule& named, DType type, size_t num_gradients) {
  std::mt19937 random(static_cast<uint32_t>(num_gradients));
  std::vector<Tensor> narrow, wide;
  std::vector<TensorView> narrow_views, wide_views;
  for (size_t k = 0; k < num_gradients; ++k) {
    wide.push_back(RandomFloats(&random));
    narrow.emplace_back(type, Shape({kCount}));
    Narrow(wide.back().as<float>(), type, narrow.back().data());
    Widen(type, narrow.back().data(), wide.back().as<float>());
    narrow_views.push_back(std::as_const(narrow.back()).view());
    wide_views.push_back(std::as_const(wide.back()).view());
  }
  Updated expected(*named.rule, &random);
  const Updated start = expected.Clone();
  expected.Apply(*named.rule, wide_views, [](Update*) {});
  Tensor expected_narrow(type, Shape({kCount}));
  Narrow(expected.after.as<float>(), type, expected_narrow.data());

  for (const VectorTarget target : SupportedVectorTargets()) {
    for (const bool bypasses_caches : {false, true}) {
      LimitVectorTarget(target);
      CAPTURE(named.name, Name(type), Name(target), num_gradients, bypasses_caches);
      Updated updated = start.Clone();
      Tensor written(type, Shape({kCount}));
      written.FillZero();
      updated.Apply(*named.rule, narrow_views, [&](Update* update) {
        update->bypasses_caches = bypasses_caches;
        update->narrow_value = written.view();
      });
      CHECK(AreSame(updated.after, expected.after));
      CHECK(AreSame(written, expected_narrow));
      for (size_t i = 0; i < updated.slots.size(); ++i) {
        CHECK(AreSame(updated.slots[i], expected.slots[i]));
      }
    }
  }
  LimitVectorTarget(VectorTarget::kAvx512);
}

TEST_CASE(
    "every rule applies narrow gradients as the same numbers in float32, and tells the value") {
  std::vector<test::NamedRule> rules = test::AllRules();
  rules.push_back({"ftrl with another power", MakeFtrl({.learning_rate_power = -.7f})});
  for (const test::NamedRule& named : rules) {
    for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
      for (const size_t num_gradients : {1, 2, 4, 6}) CheckRule(named, type, num_gradients);
    }
  }
}

TEST_CASE("a range of an update writes its range of the narrow value alone") {
  const auto rule = MakeSgd();
  std::mt19937 random(3);
  Updated updated(*rule, &random);
  const Tensor gradient = RandomFloats(&random);
  Tensor written(DType::kBFloat16, Shape({kCount}));
  written.FillZero();
  updated.Apply(*rule, {gradient.view()}, [&](Update* update) {
    update->range = {kRangeStep, 2 * kRangeStep};
    update->narrow_value = written.view();
  });
  const auto* const bits = static_cast<const uint16_t*>(written.data());
  for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
    const bool is_inside = i >= kRangeStep && i < 3 * kRangeStep;
    uint16_t expected = 0;
    if (is_inside) Narrow(updated.after.as<float>().subspan(i, 1), DType::kBFloat16, &expected);
    CHECK(bits[i] == expected);
  }
}

}  // namespace
}  // namespace lockstep
