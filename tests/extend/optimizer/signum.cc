// An optimizer that is not part of the project: each element moves by the learning rate, in the
// direction of the running mean of its gradients. Its one parameter is `beta`.
#include "absl/strings/str_cat.h"
#include "common/optimizer/element_loops.h"
#include "common/optimizer_proto/custom_optimizer.h"

namespace lockstep {
namespace {

template <typename T>
auto SignumFormula(T beta, T rate, const Elements<T>& e) {
  return [beta, rate, old = e.old_value, mean = e.slots[0]](size_t i, T g) -> T {
    mean[i] = beta * mean[i] + (1 - beta) * g;
    const T sign = mean[i] > 0 ? T{1} : mean[i] < 0 ? T{-1} : T{0};
    return old[i] - rate * sign;
  };
}

class Signum final : public UpdateRule {
 public:
  explicit Signum(float beta) : beta_(beta) {}

  absl::string_view name() const override { return "signum"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      UpdateElements<T>(update, [&](const Elements<T>& e) {
        return SignumFormula<T>(T{beta_}, T{update.learning_rate}, e);
      });
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      ForAllRows<T>(
          update, /*may_repeat=*/false,
          [&](const Elements<T>& row) {
            UpdateRow(row, SignumFormula<T>(T{beta_}, T{update.learning_rate}, row));
          },
          [](const Elements<T>&) {});
    });
  }

 private:
  const float beta_;
  const std::vector<SlotSpec> slots_ = {{.name = "mean"}};
};

absl::StatusOr<std::unique_ptr<const UpdateRule>> MakeSignum(CustomParameters* parameters) {
  const double beta = parameters->Number("beta", 0.9);
  if (!(beta >= 0 && beta < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("beta: expected a number from 0 to below 1, got ", beta));
  }
  return std::make_unique<Signum>(static_cast<float>(beta));
}

const bool kRegistered = RegisterOptimizer("signum", MakeSignum);

}  // namespace
}  // namespace lockstep
