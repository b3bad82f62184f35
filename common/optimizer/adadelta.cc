#include "common/optimizer/adadelta.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
struct AdadeltaElements {
  T rate;
  T rho;
  T epsilon;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [rate = rate, rho = rho, rest = T{1} - rho, epsilon = epsilon,
                             g = e.gradient, old = e.old_value, w = e.value, squares = e.slots[0],
                             updates = e.slots[1]](size_t i) {
      squares[i] = squares[i] * rho + g[i] * g[i] * rest;
      const T update =
          std::sqrt(updates[i] + epsilon) * (T{1} / std::sqrt(squares[i] + epsilon)) * g[i];
      w[i] = old[i] - update * rate;
      updates[i] = updates[i] * rho + update * update * rest;
    });
  }
};

class Adadelta final : public UpdateRule {
 public:
  explicit Adadelta(const AdadeltaOptions& options) : options_(options) {}

  absl::string_view name() const override { return "adadelta"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      AdadeltaElements<T>{update.learning_rate, options_.rho,
                          options_.epsilon}(AllElements<T>(update));
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      ForNamedRows<T>(update,
                      AdadeltaElements<T>{update.learning_rate, options_.rho, options_.epsilon});
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
