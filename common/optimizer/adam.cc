#include "common/optimizer/adam.h"

#include <cmath>

#include "common/optimizer/float_dispatch.h"

namespace lockstep {
namespace {

constexpr int kBeta1Power = 0;
constexpr int kBeta2Power = 1;

class Adam final : public UpdateRule {
 public:
  explicit Adam(const AdamOptions& options)
      : options_(options),
        scalars_({{"beta1_power", options.beta1}, {"beta2_power", options.beta2}}) {}

  absl::string_view name() const override { return "adam"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  absl::Span<const ScalarSpec> scalars() const override { return scalars_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const T* old_value = update.old_value.as<T>().data();
      const T* gradient = update.gradient.as<T>().data();
      T* m = update.slots[0].as<T>().data();
      T* v = update.slots[1].as<T>().data();
      const std::span<T> value = update.new_value.as<T>();
      // 1 - beta is taken in T from the rounded beta, as TensorFlow does.
      const T one_minus_beta1 = T{1} - T{options_.beta1};
      const T one_minus_beta2 = T{1} - T{options_.beta2};
      const T epsilon = options_.epsilon;
      const T alpha = T{update.learning_rate} * std::sqrt(T{1} - T{update.scalars[kBeta2Power]}) /
                      (T{1} - T{update.scalars[kBeta1Power]});
      for (size_t i = 0; i < value.size(); ++i) {
        m[i] += (gradient[i] - m[i]) * one_minus_beta1;
        v[i] += (gradient[i] * gradient[i] - v[i]) * one_minus_beta2;
        value[i] = old_value[i] - (m[i] * alpha) / (std::sqrt(v[i]) + epsilon);
      }
    });
  }

  void AdvanceScalars(absl::Span<float> scalars) const override {
    scalars[kBeta1Power] *= options_.beta1;
    scalars[kBeta2Power] *= options_.beta2;
  }

 private:
  const AdamOptions options_;
  const std::vector<SlotSpec> slots_ = {{"adam_m", 0}, {"adam_v", 0}};
  const std::vector<ScalarSpec> scalars_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdam(const AdamOptions& options) {
  return std::make_unique<Adam>(options);
}

}  // namespace lockstep
