#include "common/optimizer/ftrl.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/optimizer/element_loops.h"
#include "common/optimizer/powers.h"

namespace lockstep {
namespace {

constexpr float kRootPower = -0.5f;
constexpr float kLeastRate = 1e-36f;  // TensorFlow's, where it divides beta
constexpr size_t kStretch = 256;      // elements whose powers are computed at a time
static_assert(kStretch % kPowersAtATime == 0);

template <typename T>
struct FtrlNumbers {
  FtrlNumbers(const FtrlOptions& options, float learning_rate)
      : rate(learning_rate),
        exponent(-options.learning_rate_power),
        l1(options.l1_regularization_strength),
        twice_l2(T{2} * T{options.l2_regularization_strength +
                          options.beta / (2.0f * std::max(learning_rate, kLeastRate))}),
        twice_shrinkage(T{2} * T{options.l2_shrinkage_regularization_strength}) {}

  T rate;
  T exponent;
  T l1;
  T twice_l2;
  T twice_shrinkage;
};

// n^-p of each element of a stretch, before the step and after it.
template <typename T>
struct SquareRoots {
  T Before(size_t, T accum) const { return std::sqrt(accum); }
  T After(size_t, T n) const { return std::sqrt(n); }
};

template <typename T>
struct ComputedPowers {
  T Before(size_t i, T) const { return before[i]; }
  T After(size_t i, T) const { return after[i]; }

  const T* before;
  const T* after;
};

template <bool kShrinks, typename T, typename Powers>
auto FtrlFormula(const FtrlNumbers<T>& numbers, Powers powers, const Elements<T>& e) {
  return [with = numbers, powers, old = e.old_value, accum = e.slots[0], linear = e.slots[1]](
             size_t i, T g) -> T {
    const T n = accum[i] + g * g;
    const T power = powers.After(i, n);
    const T pull = kShrinks ? g + with.twice_shrinkage * old[i] : g;
    const T z = linear[i] + (pull - (power - powers.Before(i, accum[i])) / with.rate * old[i]);
    const T moved = ((z > 0 ? with.l1 : -with.l1) - z) / (power / with.rate + with.twice_l2);
    linear[i] = z;
    accum[i] = n;
    return std::abs(z) > with.l1 ? moved : T{0};
  };
}

// At most kStretch elements, with a gradient.
template <bool kShrinks, typename T>
void FtrlStretch(const FtrlNumbers<T>& numbers, const Elements<T>& e) {
  std::array<T, kStretch> n;
  std::array<T, kStretch> before;
  std::array<T, kStretch> after;
  const T* const accum = e.slots[0];
  ForEachElement(
      e.count, [g = e.gradient, accum, n = n.data()](size_t i) { n[i] = accum[i] + g[i] * g[i]; });
  PowersOf({accum, e.count}, numbers.exponent, {before.data(), e.count});
  PowersOf({n.data(), e.count}, numbers.exponent, {after.data(), e.count});
  const ComputedPowers<T> powers{before.data(), after.data()};
  UpdateRow(e, FtrlFormula<kShrinks>(numbers, powers, e));
}

template <typename T, bool kIsRoot, bool kShrinks>
void FtrlTensor(const FtrlNumbers<T>& numbers, const Update& update) {
  if constexpr (kIsRoot) {
    UpdateElements<T>(update, [&](const Elements<T>& e) {
      return FtrlFormula<kShrinks>(numbers, SquareRoots<T>(), e);
    });
    return;
  }
  const ElementRange range = RangeOf(update);
  std::array<T, kStretch> means;
  for (size_t done = 0; done < range.count; done += kStretch) {
    const ElementRange part{range.first + done, std::min(kStretch, range.count - done)};
    TakeMean(update, part, means.data());
    Elements<T> stretch = ElementsOf<T>(update, part);
    stretch.gradient = means.data();
    FtrlStretch<kShrinks>(numbers, stretch);
    WriteNarrow(update, part, stretch.value);
  }
}

template <typename T, bool kIsRoot, bool kShrinks>
void FtrlRow(const FtrlNumbers<T>& numbers, const Elements<T>& row) {
  if constexpr (kIsRoot) {
    UpdateRow(row, FtrlFormula<kShrinks>(numbers, SquareRoots<T>(), row));
    return;
  }
  for (size_t begin = 0; begin < row.count; begin += kStretch) {
    FtrlStretch<kShrinks>(numbers, Stretch(row, begin, std::min(kStretch, row.count - begin)));
  }
}

// TensorFlow's sparse kernel for rows of one element always takes the power, and adds in another
// order.
template <typename T, bool kIsRoot, bool kShrinks>
void FtrlSingle(const FtrlNumbers<T>& with, T g, T& w, T& accum, T& linear) {
  const T pull = kShrinks ? g + with.twice_shrinkage * w : g;
  const T n = accum + g * g;
  const T sigma = (std::pow(n, with.exponent) - std::pow(accum, with.exponent)) / with.rate;
  const T z = linear + pull - sigma * w;
  const T power = kIsRoot ? std::sqrt(n) : std::pow(n, with.exponent);
  w = (std::clamp(z, -with.l1, with.l1) - z) / (power / with.rate + with.twice_l2);
  linear = z;
  accum = n;
}

class Ftrl final : public UpdateRule {
 public:
  explicit Ftrl(const FtrlOptions& options)
      : options_(options), slots_({{"accum", options.initial_accumulator_value}, {"linear", 0}}) {}

  absl::string_view name() const override { return "ftrl"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    Choose(update.old_value.dtype, [&]<typename T, bool kIsRoot, bool kShrinks>() {
      FtrlTensor<T, kIsRoot, kShrinks>(FtrlNumbers<T>(options_, update.learning_rate), update);
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    Choose(update.value.dtype, [&]<typename T, bool kIsRoot, bool kShrinks>() {
      const FtrlNumbers<T> numbers(options_, update.learning_rate);
      ForNamedRows<T>(update, [&](const Elements<T>& row) {
        if (row.count == 1) {
          FtrlSingle<T, kIsRoot, kShrinks>(numbers, *row.gradient, *row.value, *row.slots[0],
                                           *row.slots[1]);
        } else {
          FtrlRow<T, kIsRoot, kShrinks>(numbers, row);
        }
      });
    });
  }

 private:
  template <typename Body>
  void Choose(DType dtype, Body body) const {
    const bool shrinks = options_.l2_shrinkage_regularization_strength != 0;
    DispatchFloat(dtype, [&]<typename T>() {
      if (options_.learning_rate_power == kRootPower) {
        shrinks ? body.template operator()<T, true, true>()
                : body.template operator()<T, true, false>();
      } else {
        shrinks ? body.template operator()<T, false, true>()
                : body.template operator()<T, false, false>();
      }
    });
  }

  const FtrlOptions options_;
  const std::vector<SlotSpec> slots_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeFtrl(const FtrlOptions& options) {
  return std::make_unique<Ftrl>(options);
}

}  // namespace lockstep
