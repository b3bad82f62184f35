#include "common/optimizer/momentum.h"

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

template <typename T>
struct MomentumElements {
  T rate;
  T momentum;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [rate = rate, momentum = momentum, g = e.gradient, old = e.old_value,
                             w = e.value, sum = e.slots[0]](size_t i) {
      sum[i] = sum[i] * momentum + g[i];
      w[i] = old[i] - sum[i] * rate;
    });
  }
};

template <typename T>
struct NesterovElements {
  T rate;
  T momentum;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [rate = rate, momentum = momentum, g = e.gradient, old = e.old_value,
                             w = e.value, sum = e.slots[0]](size_t i) {
      sum[i] = sum[i] * momentum + g[i];
      w[i] = old[i] - (g[i] * rate + sum[i] * momentum * rate);
    });
  }
};

// TensorFlow's sparse kernel multiplies the two constants first.
template <typename T>
struct NesterovRow {
  T rate;
  T momentum;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [rate = rate, momentum = momentum, both = rate * momentum,
                             g = e.gradient, w = e.value, sum = e.slots[0]](size_t i) {
      sum[i] = sum[i] * momentum + g[i];
      w[i] -= g[i] * rate + sum[i] * both;
    });
  }
};

class Momentum final : public UpdateRule {
 public:
  explicit Momentum(const MomentumOptions& options) : options_(options) {}

  absl::string_view name() const override { return "momentum"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const auto all = AllElements<T>(update);
      if (options_.nesterov) {
        NesterovElements<T>{update.learning_rate, options_.momentum}(all);
      } else {
        MomentumElements<T>{update.learning_rate, options_.momentum}(all);
      }
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      if (options_.nesterov) {
        ForNamedRows<T>(update, NesterovRow<T>{update.learning_rate, options_.momentum});
      } else {
        ForNamedRows<T>(update, MomentumElements<T>{update.learning_rate, options_.momentum});
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
