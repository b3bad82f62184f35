#include "common/optimizer/adagrad.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
struct AdagradElements {
  T rate;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [rate = rate, g = e.gradient, old = e.old_value, w = e.value,
                             sum = e.slots[0]](size_t i) {
      sum[i] += g[i] * g[i];
      w[i] = old[i] - g[i] * rate * (T{1} / std::sqrt(sum[i]));
    });
  }
};

template <typename T>
struct AdagradRow {
  T rate;

  void operator()(const Elements<T>& e) const {
    if (e.count != 1) return AdagradElements<T>{rate}(e);
    const T g = *e.gradient;
    T& sum = *e.slots[0];
    sum += g * g;
    *e.value -= rate * g / std::sqrt(sum);
  }
};

class Adagrad final : public UpdateRule {
 public:
  explicit Adagrad(const AdagradOptions& options)
      : slots_({{"accumulator", options.initial_accumulator_value}}) {}

  absl::string_view name() const override { return "adagrad"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      AdagradElements<T>{update.learning_rate}(AllElements<T>(update));
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      ForNamedRows<T>(update, AdagradRow<T>{update.learning_rate});
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
