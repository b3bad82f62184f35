#include "common/optimizer/sgd.h"

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
struct SgdElements {
  T rate;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [rate = rate, g = e.gradient, old = e.old_value,
                             w = e.value](size_t i) { w[i] = old[i] - g[i] * rate; });
  }
};

class Sgd final : public UpdateRule {
 public:
  absl::string_view name() const override { return "sgd"; }
  bool TakesRepeatedRows() const override { return true; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      SgdElements<T>{update.learning_rate}(AllElements<T>(update));
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      ForAllRows<T>(update, /*may_repeat=*/true, SgdElements<T>{update.learning_rate},
                    [](const Elements<T>&) {});
    });
  }
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeSgd() { return std::make_unique<Sgd>(); }

}  // namespace lockstep
