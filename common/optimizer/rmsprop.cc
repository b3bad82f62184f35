#include "common/optimizer/rmsprop.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

constexpr int kSquares = 0;
constexpr int kMomentum = 1;
constexpr int kMean = 2;

template <typename T, bool kCentered>
struct RmsPropElements {
  T rate;
  T decay;
  T momentum;
  T epsilon;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [*this, rest = T{1} - decay, g = e.gradient, old = e.old_value,
                             w = e.value, squares = e.slots[kSquares], sum = e.slots[kMomentum],
                             mean = e.slots[kMean]](size_t i) {
      squares[i] += (g[i] * g[i] - squares[i]) * rest;
      T variance = squares[i];
      if constexpr (kCentered) {
        mean[i] += (g[i] - mean[i]) * rest;
        variance -= mean[i] * mean[i];
      }
      sum[i] = sum[i] * momentum + (g[i] * rate) / std::sqrt(variance + epsilon);
      w[i] = old[i] - sum[i];
    });
  }
};

// TensorFlow's sparse kernel multiplies in another order, and takes mg off after adding epsilon.
template <typename T, bool kCentered>
struct RmsPropRow {
  T rate;
  T decay;
  T momentum;
  T epsilon;

  void operator()(const Elements<T>& e) const {
    ForEachElement(e.count, [*this, rest = T{1} - decay, g = e.gradient, w = e.value,
                             squares = e.slots[kSquares], sum = e.slots[kMomentum],
                             mean = e.slots[kMean]](size_t i) {
      squares[i] = squares[i] * decay + g[i] * g[i] * rest;
      T variance = squares[i] + epsilon;
      if constexpr (kCentered) {
        mean[i] = mean[i] * decay + g[i] * rest;
        variance -= mean[i] * mean[i];
      }
      sum[i] = sum[i] * momentum + (T{1} / std::sqrt(variance)) * rate * g[i];
      w[i] -= sum[i];
    });
  }
};

class RmsProp final : public UpdateRule {
 public:
  explicit RmsProp(const RmsPropOptions& options) : options_(options) {
    if (options.centered) slots_.push_back({"mg", 0});
  }

  absl::string_view name() const override { return "rmsprop"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const auto all = AllElements<T>(update);
      if (options_.centered) {
        Make<RmsPropElements<T, true>>(update.learning_rate)(all);
      } else {
        Make<RmsPropElements<T, false>>(update.learning_rate)(all);
      }
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      if (options_.centered) {
        ForNamedRows<T>(update, Make<RmsPropRow<T, true>>(update.learning_rate));
      } else {
        ForNamedRows<T>(update, Make<RmsPropRow<T, false>>(update.learning_rate));
      }
    });
  }

 private:
  template <typename Loop>
  Loop Make(float learning_rate) const {
    return {learning_rate, options_.decay, options_.momentum, options_.epsilon};
  }

  const RmsPropOptions options_;
  std::vector<SlotSpec> slots_ = {{"rms", 1}, {"momentum", 0}};
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeRmsProp(const RmsPropOptions& options) {
  return std::make_unique<RmsProp>(options);
}

}  // namespace lockstep
