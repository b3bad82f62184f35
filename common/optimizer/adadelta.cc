#include "common/optimizer/adadelta.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
struct AdadeltaNumbers {
  T rate;
  T rho;
  T epsilon;
};

template <typename T>
auto AdadeltaFormula(const AdadeltaNumbers<T>& numbers, const Elements<T>& e) {
  return [with = numbers, rest = T{1} - numbers.rho, old = e.old_value, squares = e.slots[0],
          updates = e.slots[1]](size_t i, T g) -> T {
    squares[i] = squares[i] * with.rho + g * g * rest;
    const T update =
        std::sqrt(updates[i] + with.epsilon) * (T{1} / std::sqrt(squares[i] + with.epsilon)) * g;
    updates[i] = updates[i] * with.rho + update * update * rest;
    return old[i] - update * with.rate;
  };
}

class Adadelta final : public UpdateRule {
 public:
  explicit Adadelta(const AdadeltaOptions& options) : options_(options) {}

  absl::string_view name() const override { return "adadelta"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const AdadeltaNumbers<T> numbers{update.learning_rate, options_.rho, options_.epsilon};
      UpdateElements<T>(update,
                        [&](const Elements<T>& e) { return AdadeltaFormula<T>(numbers, e); });
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      const AdadeltaNumbers<T> numbers{update.learning_rate, options_.rho, options_.epsilon};
      ForNamedRows<T>(update, [&](const Elements<T>& row) {
        UpdateRow(row, AdadeltaFormula<T>(numbers, row));
      });
    });
  }

 private:
  const AdadeltaOptions options_;
  const std::vector<SlotSpec> slots_ = {{"accum", 0}, {"accum_update", 0}};
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdadelta(const AdadeltaOptions& options) {
  return std::make_unique<Adadelta>(options);
}

}  // namespace lockstep
