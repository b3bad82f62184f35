#include "common/optimizer/rmsprop.h"

#include <cmath>

#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

constexpr int kSquares = 0;
constexpr int kMomentum = 1;
constexpr int kMean = 2;

template <typename T>
struct RmsPropNumbers {
  T rate;
  T decay;
  T momentum;
  T epsilon;
};

template <typename T, bool kCentered>
auto RmsPropFormula(const RmsPropNumbers<T>& numbers, const Elements<T>& e) {
  return
      [with = numbers, rest = T{1} - numbers.decay, old = e.old_value, squares = e.slots[kSquares],
       sum = e.slots[kMomentum], mean = e.slots[kMean]](size_t i, T g) -> T {
        squares[i] += (g * g - squares[i]) * rest;
        T variance = squares[i];
        if constexpr (kCentered) {
          mean[i] += (g - mean[i]) * rest;
          variance -= mean[i] * mean[i];
        }
        sum[i] = sum[i] * with.momentum + (g * with.rate) / std::sqrt(variance + with.epsilon);
        return old[i] - sum[i];
      };
}

// TensorFlow's sparse kernel multiplies in another order, and takes mg off after adding epsilon.
template <typename T, bool kCentered>
auto RmsPropRowFormula(const RmsPropNumbers<T>& numbers, const Elements<T>& e) {
  return
      [with = numbers, rest = T{1} - numbers.decay, old = e.old_value, squares = e.slots[kSquares],
       sum = e.slots[kMomentum], mean = e.slots[kMean]](size_t i, T g) -> T {
        squares[i] = squares[i] * with.decay + g * g * rest;
        T variance = squares[i] + with.epsilon;
        if constexpr (kCentered) {
          mean[i] = mean[i] * with.decay + g * rest;
          variance -= mean[i] * mean[i];
        }
        sum[i] = sum[i] * with.momentum + (T{1} / std::sqrt(variance)) * with.rate * g;
        return old[i] - sum[i];
      };
}

class RmsProp final : public UpdateRule {
 public:
  explicit RmsProp(const RmsPropOptions& options) : options_(options) {
    if (options.centered) slots_.push_back({"mg", 0});
  }

  absl::string_view name() const override { return "rmsprop"; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }

  void Apply(const Update& update) const override {
    DispatchFloat(update.old_value.dtype, [&]<typename T>() {
      const auto numbers = Numbers<T>(update.learning_rate);
      if (options_.centered) {
        UpdateElements<T>(
            update, [&](const Elements<T>& e) { return RmsPropFormula<T, true>(numbers, e); });
      } else {
        UpdateElements<T>(
            update, [&](const Elements<T>& e) { return RmsPropFormula<T, false>(numbers, e); });
      }
    });
  }

  void ApplyRows(const RowUpdate& update) const override {
    DispatchFloat(update.value.dtype, [&]<typename T>() {
      const auto numbers = Numbers<T>(update.learning_rate);
      if (options_.centered) {
        ForNamedRows<T>(update, [&](const Elements<T>& row) {
          UpdateRow(row, RmsPropRowFormula<T, true>(numbers, row));
        });
      } else {
        ForNamedRows<T>(update, [&](const Elements<T>& row) {
          UpdateRow(row, RmsPropRowFormula<T, false>(numbers, row));
        });
      }
    });
  }

 private:
  template <typename T>
  RmsPropNumbers<T> Numbers(float learning_rate) const {
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
