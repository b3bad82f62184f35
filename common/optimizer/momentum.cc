#include "common/optimizer/momentum.h"

#include "common/optimizer/float_dispatch.h"

namespace lockstep {
namespace {

class Momentum final : public UpdateRule {
 public:
  explicit Momentum(const MomentumOptions& options) : options_(options) {}

  absl::string_view name() const override { return "momentum"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const T* old_value = update.old_value.as<T>().data();
      const T* gradient = update.gradient.as<T>().data();
      T* sum = update.slots[0].as<T>().data();
      const std::span<T> value = update.new_value.as<T>();
      const T rate = update.learning_rate;
      const T momentum = options_.momentum;
      if (options_.nesterov) {
        for (size_t i = 0; i < value.size(); ++i) {
          sum[i] = sum[i] * momentum + gradient[i];
          value[i] = old_value[i] - (gradient[i] * rate + sum[i] * momentum * rate);
        }
      } else {
        for (size_t i = 0; i < value.size(); ++i) {
          sum[i] = sum[i] * momentum + gradient[i];
          value[i] = old_value[i] - sum[i] * rate;
        }
      }
    });
  }

 private:
  const MomentumOptions options_;
  const std::vector<SlotSpec> slots_ = {{"momentum", 0}};
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeMomentum(const MomentumOptions& options) {
  return std::make_unique<Momentum>(options);
}

}  // namespace lockstep
