// Gradients that are summed, divided and applied in one pass, in vectors and by ranges, against the
// same done one after another and element by element.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "common/optimizer/ftrl.h"
#include "common/optimizer/sgd.h"
#include "common/tensor/vector_target.h"
#include "tests/unit/common/optimizer/all_rules.h"

namespace lockstep {
namespace {

// A variable's tensors in plain vectors.
template <typename T>
struct State {
  std::vector<T> value;
  std::vector<std::vector<T>> slots;

  // The bits, but of a NaN only that it is one.
  bool IsSame(const State& other) const {
    const auto are_same = [](const std::vector<T>& a, const std::vector<T>& b) {
      for (size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
      }
      return a.size() == b.size();
    };
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!are_same(slots[i], other.slots[i])) return false;
    }
    return are_same(value, other.value);
  }
};

// Ordinary numbers with zeros, subnormal and very large ones, infinities and NaN among them.
template <typename T>
std::vector<T> RandomElements(size_t count, std::mt19937* random) {
  std::uniform_real_distribution<T> ordinary(-3, 3);
  std::uniform_int_distribution<int> kind(0, 63);
  std::vector<T> elements(count);
  for (T& element : elements) {
    element = ordinary(*random);
    switch (kind(*random)) {
      case 0:
        element = std::copysign(T{0}, element);
        break;
      case 1:
        element *= std::numeric_limits<T>::denorm_min() * 1000;
        break;
      case 2:
        element *= std::numeric_limits<T>::max() / 8;
        break;
      case 3:
        element = std::copysign(std::numeric_limits<T>::infinity(), element);
        break;
      case 4:
        element = std::numeric_limits<T>::quiet_NaN();
        break;
      default:
        break;
    }
  }
  return elements;
}

template <typename T>
State<T> RandomState(const UpdateRule& rule, size_t count, std::mt19937* random) {
  State<T> state{RandomElements<T>(count, random), {}};
  for (size_t i = 0; i < rule.slots().size(); ++i) {
    state.slots.push_back(RandomElements<T>(count, random));
  }
  return state;
}

template <typename T>
TensorView ViewOf(const std::vector<T>& elements, size_t first, size_t count) {
  return {DTypeOf<T>(), Shape({static_cast<int64_t>(count)}), elements.data() + first};
}

template <typename T>
MutableTensorView ViewOf(std::vector<T>& elements, size_t first, size_t count) {
  return {DTypeOf<T>(), Shape({static_cast<int64_t>(count)}), elements.data() + first};
}

// What an update of `count` elements from `first` on makes of them; `change` has the last word.
template <typename T>
void Apply(const UpdateRule& rule, const std::vector<std::vector<T>>& gradients, size_t first,
           size_t count, const State<T>& before, State<T>* after,
           const std::function<void(Update*)>& change) {
  const std::vector<float> scalars = InitialScalars(rule);
  std::vector<TensorView> views;
  for (const auto& gradient : gradients) views.push_back(ViewOf(gradient, first, count));
  std::vector<MutableTensorView> slots;
  for (auto& slot : after->slots) slots.push_back(ViewOf(slot, first, count));
  Update update{.old_value = ViewOf(before.value, first, count),
                .gradients = views,
                .divisor = static_cast<int>(gradients.size()),
                .new_value = ViewOf(after->value, first, count),
                .slots = slots,
                .learning_rate = .3f,
                .scalars = scalars,
                .version = 1};
  change(&update);
}

// Each element by itself, with the mean taken before.
template <typename T>
State<T> SinglyApplied(const UpdateRule& rule, const std::vector<std::vector<T>>& gradients,
                       const State<T>& before) {
  std::vector<T> mean = gradients[0];
  for (size_t i = 0; i < mean.size(); ++i) {
    for (size_t k = 1; k < gradients.size(); ++k) mean[i] = mean[i] + gradients[k][i];
    mean[i] = mean[i] / static_cast<T>(gradients.size());
  }
  State<T> after = before;
  for (size_t i = 0; i < mean.size(); ++i) {
    Apply<T>(rule, {mean}, i, 1, before, &after, [&](Update* update) { rule.Apply(*update); });
  }
  return after;
}

template <typename T>
void CheckEveryWay(const test::NamedRule& named, size_t num_gradients, size_t count) {
  const UpdateRule& rule = *named.rule;
  std::mt19937 random(static_cast<uint32_t>(num_gradients * 10000 + count));
  std::vector<std::vector<T>> gradients;
  for (size_t k = 0; k < num_gradients; ++k) {
    gradients.push_back(RandomElements<T>(count, &random));
  }
  const State<T> before = RandomState<T>(rule, count, &random);
  LimitVectorTarget(VectorTarget::kBaseline);
  const State<T> expected = SinglyApplied(rule, gradients, before);

  for (const VectorTarget target : SupportedVectorTargets()) {
    LimitVectorTarget(target);
    CAPTURE(named.name, sizeof(T), num_gradients, count, Name(target));
    const auto check = [&](const std::function<void(Update*)>& apply) {
      State<T> after = before;
      after.value.assign(count, T{-1});
      Apply<T>(rule, gradients, 0, count, before, &after, apply);
      CHECK(after.IsSame(expected));
    };
    check([&](Update* update) { rule.Apply(*update); });
    check([&](Update* update) {  // non-temporal, to memory that begins anywhere
      update->bypasses_caches = true;
      rule.Apply(*update);
    });
    check([&](Update* update) {  // by ranges, the last one first
      for (size_t first = (count - 1) / kRangeStep * kRangeStep;; first -= kRangeStep) {
        update->range = {first, std::min(kRangeStep, count - first)};
        rule.Apply(*update);
        if (first == 0) break;
      }
    });
    State<T> in_place = before;
    Apply<T>(rule, gradients, 0, count, in_place, &in_place,
             [&](Update* update) { rule.Apply(*update); });
    CHECK(in_place.IsSame(expected));
  }
}

TEST_CASE("one pass over several gradients gives the bits of their mean applied by elements") {
  for (const test::NamedRule& named : test::AllRules()) {
    for (const size_t num_gradients : {1, 2, 3, 4, 5, 9}) {
      CheckEveryWay<float>(named, num_gradients, 1100);
      CheckEveryWay<double>(named, num_gradients, 531);
    }
    for (const size_t count : {1, 17, 512, 513, 2049}) CheckEveryWay<float>(named, 2, count);
  }
}

TEST_CASE("a sum is applied as it is, not divided") {
  const auto rule = MakeSgd();
  const std::vector<float> old = {10, 20};
  for (const size_t num_gradients : {1, 3, 6}) {
    const std::vector<float> gradient = {1, 2};
    const std::vector<TensorView> views(num_gradients, ViewOf(gradient, 0, 2));
    std::vector<float> value(2);
    rule->Apply({.old_value = ViewOf(old, 0, 2),
                 .gradients = views,
                 .new_value = ViewOf(value, 0, 2),
                 .learning_rate = 1});
    const auto n = static_cast<float>(num_gradients);
    CHECK(value == std::vector<float>{10 - n, 20 - 2 * n});
  }
}

// Of these the last elements of a tensor, not those of a range, are another function's.
TEST_CASE("Ftrl's powers are those of the whole tensor in every range") {
  const test::NamedRule named{"ftrl", MakeFtrl({.learning_rate_power = -.7f})};
  std::mt19937 random(5);
  constexpr size_t kCount = 1003;
  std::vector<std::vector<float>> gradients;
  for (int k = 0; k < 3; ++k) gradients.push_back(RandomElements<float>(kCount, &random));
  const State<float> before = RandomState<float>(*named.rule, kCount, &random);
  State<float> whole = before;
  LimitVectorTarget(VectorTarget::kBaseline);
  Apply<float>(*named.rule, gradients, 0, kCount, before, &whole,
               [&](Update* update) { named.rule->Apply(*update); });
  for (const VectorTarget target : SupportedVectorTargets()) {
    LimitVectorTarget(target);
    CAPTURE(Name(target));
    State<float> ranges = before;
    Apply<float>(*named.rule, gradients, 0, kCount, before, &ranges, [&](Update* update) {
      for (size_t first = 0; first < kCount; first += 5 * kRangeStep) {
        update->range = {first, std::min(5 * kRangeStep, kCount - first)};
        named.rule->Apply(*update);
      }
    });
    CHECK(ranges.IsSame(whole));
  }
}

}  // namespace
}  // namespace lockstep
