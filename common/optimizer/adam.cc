#include "common/optimizer/adam.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

constexpr int kBeta1Power = 0;
constexpr int kBeta2Power = 1;

template <typename T>
struct AdamNumbers {
  // 1 - beta is taken in T from the rounded beta, as TensorFlow does.
  AdamNumbers(const AdamOptions& options, float learning_rate, absl::Span<const float> powers)
      : beta1(options.beta1),
        beta2(options.beta2),
        rest1(T{1} - beta1),
        rest2(T{1} - beta2),
        epsilon(options.epsilon),
        alpha(T{learning_rate} * std::sqrt(T{1} - T{powers[kBeta2Power]}) /
              (T{1} - T{powers[kBeta1Power]})),
        rate(learning_rate),
        weight_decay(options.weight_decay) {}

  T beta1;
  T beta2;
  T rest1;
  T rest2;
  T epsilon;
  T alpha;
  T rate;
  T weight_decay;
};

template <typename T, bool kDecayWeights>
T Decayed(T value, const AdamNumbers<T>& with) {
  if constexpr (!kDecayWeights) return value;
  return value - value * with.weight_decay * with.rate;
}

template <typename T, bool kDecayWeights>
auto AdamFormula(const AdamNumbers<T>& numbers, const Elements<T>& e) {
  return [with = numbers, old = e.old_value, m = e.slots[0], v = e.slots[1]](size_t i, T g) -> T {
    m[i] += (g - m[i]) * with.rest1;
    v[i] += (g * g - v[i]) * with.rest2;
    return Decayed<T, kDecayWeights>(old[i], with) -
           (m[i] * with.alpha) / (std::sqrt(v[i]) + with.epsilon);
  };
}

// TensorFlow makes the sparse update of whole-tensor operations, which round otherwise.
template <typename T, bool kDecayWeights, bool kHasGradient>
void AdamRow(const AdamNumbers<T>& numbers, const Elements<T>& e) {
  ForEachElement(e.count, [with = numbers, g = e.gradient, w = e.value, m = e.slots[0],
                           v = e.slots[1]](size_t i) {
    m[i] *= with.beta1;
    v[i] *= with.beta2;
    if constexpr (kHasGradient) {
      m[i] += g[i] * with.rest1;
      v[i] += g[i] * g[i] * with.rest2;
    }
    w[i] = Decayed<T, kDecayWeights>(w[i], with) -
           (m[i] * with.alpha) / (std::sqrt(v[i]) + with.epsilon);
  });
}

class Adam final : public UpdateRule {
 public:
  explicit Adam(const AdamOptions& options)
      : options_(options),
        scalars_({{"beta1_power", options.beta1}, {"beta2_power", options.beta2}}) {}

  absl::string_view name() const override { return "adam"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  absl::Span<const ScalarSpec> scalars() const override { return scalars_; }
  bool TouchesOnlyRows() const override { return options_.lazy; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const AdamNumbers<T> numbers(options_, update.learning_rate, update.scalars);
      if (options_.weight_decay == 0) {
        UpdateElements<T>(update,
                          [&](const Elements<T>& e) { return AdamFormula<T, false>(numbers, e); });
      } else {
        UpdateElements<T>(update,
                          [&](const Elements<T>& e) { return AdamFormula<T, true>(numbers, e); });
      }
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      if (options_.weight_decay == 0) {
        Rows<T, false>(update);
      } else {
        Rows<T, true>(update);
      }
    });
  }

  void AdvanceScalars(absl::Span<float> scalars) const override {
    scalars[kBeta1Power] *= options_.beta1;
    scalars[kBeta2Power] *= options_.beta2;
  }

 private:
  template <typename T, bool kDecayWeights>
  void Rows(const RowUpdate& update) const {
    const AdamNumbers<T> numbers(options_, update.learning_rate, update.scalars);
    const auto named = [&](const Elements<T>& row) {
      AdamRow<T, kDecayWeights, true>(numbers, row);
    };
    if (options_.lazy) return ForNamedRows<T>(update, named);
    ForAllRows<T>(update, /*may_repeat=*/false, named, [&](const Elements<T>& rows) {
      AdamRow<T, kDecayWeights, false>(numbers, rows);
    });
  }

  const AdamOptions options_;
  const std::vector<SlotSpec> slots_ = {{"m", 0}, {"v", 0}};
  const std::vector<ScalarSpec> scalars_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdam(const AdamOptions& options) {
  return std::make_unique<Adam>(options);
}

}  // namespace lockstep
