#include "common/optimizer/adagrad.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
auto AdagradFormula(T rate, const Elements<T>& e) {
  return [rate, old = e.old_value, sum = e.slots[0]](size_t i, T g) -> T {
    sum[i] += g * g;
    return old[i] - g * rate * (T{1} / std::sqrt(sum[i]));
  };
}

template <typename T>
void AdagradRow(T rate, const Elements<T>& e) {
  if (e.count != 1) return UpdateRow(e, AdagradFormula<T>(rate, e));
  const T g = *e.gradient;
  T& sum = *e.slots[0];
  sum += g * g;
  *e.value -= rate * g / std::sqrt(sum);
}

class Adagrad final : public UpdateRule {
 public:
  explicit Adagrad(const AdagradOptions& options)
      : slots_({{"accumulator", options.initial_accumulator_value}}) {}

  absl::string_view name() const override { return "adagrad"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      UpdateElements<T>(update, [rate = T{update.learning_rate}](const Elements<T>& e) {
        return AdagradFormula<T>(rate, e);
      });
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      ForNamedRows<T>(update, [rate = T{update.learning_rate}](const Elements<T>& row) {
        AdagradRow<T>(rate, row);
      });
    });
  }

 private:
  const std::vector<SlotSpec> slots_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdagrad(const AdagradOptions& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace lockstep
