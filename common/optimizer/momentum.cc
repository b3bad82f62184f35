#include "common/optimizer/momentum.h"

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
auto MomentumFormula(T rate, T momentum, const Elements<T>& e) {
  return [rate, momentum, old = e.old_value, sum = e.slots[0]](size_t i, T g) -> T {
    sum[i] = sum[i] * momentum + g;
    return old[i] - sum[i] * rate;
  };
}

template <typename T>
auto NesterovFormula(T rate, T momentum, const Elements<T>& e) {
  return [rate, momentum, old = e.old_value, sum = e.slots[0]](size_t i, T g) -> T {
    sum[i] = sum[i] * momentum + g;
    return old[i] - (g * rate + sum[i] * momentum * rate);
  };
}

// TensorFlow's sparse kernel multiplies the two constants first.
template <typename T>
auto NesterovRowFormula(T rate, T momentum, const Elements<T>& e) {
  return [rate, momentum, both = rate * momentum, old = e.old_value, sum = e.slots[0]](size_t i,
                                                                                       T g) -> T {
    sum[i] = sum[i] * momentum + g;
    return old[i] - (g * rate + sum[i] * both);
  };
}

class Momentum final : public UpdateRule {
 public:
  explicit Momentum(const MomentumOptions& options) : options_(options) {}

  absl::string_view name() const override { return "momentum"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const T rate = update.learning_rate;
      const T momentum = options_.momentum;
      if (options_.nesterov) {
        UpdateElements<T>(
            update, [&](const Elements<T>& e) { return NesterovFormula<T>(rate, momentum, e); });
      } else {
        UpdateElements<T>(
            update, [&](const Elements<T>& e) { return MomentumFormula<T>(rate, momentum, e); });
      }
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      const T rate = update.learning_rate;
      const T momentum = options_.momentum;
      if (options_.nesterov) {
        ForNamedRows<T>(update, [&](const Elements<T>& row) {
          UpdateRow(row, NesterovRowFormula<T>(rate, momentum, row));
        });
      } else {
        ForNamedRows<T>(update, [&](const Elements<T>& row) {
          UpdateRow(row, MomentumFormula<T>(rate, momentum, row));
        });
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
