#include "common/optimizer/sgd.h"

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
auto SgdFormula(T rate, const Elements<T>& e) {
  return [rate, old = e.old_value](size_t i, T g) -> T { return old[i] - g * rate; };
}

class Sgd final : public UpdateRule {
 public:
  absl::string_view name() const override { return "sgd"; }
  bool TakesRepeatedRows() const override { return true; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      UpdateElements<T>(update, [rate = T{update.learning_rate}](const Elements<T>& e) {
        return SgdFormula<T>(rate, e);
      });
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      ForAllRows<T>(
          update, /*may_repeat=*/true,
          [rate = T{update.learning_rate}](const Elements<T>& row) {
            UpdateRow(row, SgdFormula<T>(rate, row));
          },
          [](const Elements<T>&) {});
    });
  }
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeSgd() { return std::make_unique<Sgd>(); }

}  // namespace lockstep
