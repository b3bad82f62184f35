// A variable that is updated step by step, with slots and scalars kept as a parameter server does.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "common/optimizer/update_rule.h"

namespace lockstep::test {

// As close as TensorFlow's kernels are to one another: a millionth of the largest magnitude, and of
// doubles a million times less.
template <typename T>
void CheckClose(const std::vector<T>& got, const std::vector<T>& expected) {
  REQUIRE(got.size() == expected.size());
  double largest = 0;
  for (const T value : expected) largest = std::max<double>(largest, std::abs(value));
  const double tolerance = largest * (sizeof(T) == sizeof(float) ? 1e-6 : 1e-12);
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(static_cast<double>(got[i]) ==
          Approx(static_cast<double>(expected[i])).epsilon(0).margin(tolerance));
  }
}

template <typename T>
class Trained {
 public:
  Trained(std::unique_ptr<const UpdateRule> rule, const std::vector<T>& value, int64_t width = 1)
      : rule_(std::move(rule)), width_(width), scalars_(InitialScalars(*rule_)) {
    const Shape shape({static_cast<int64_t>(value.size()) / width, width});
    value_ = Tensor(DTypeOf<T>(), shape);
    next_ = Tensor(DTypeOf<T>(), shape);
    std::ranges::copy(value, value_.template as<T>().begin());
    for (const SlotSpec& spec : rule_->slots()) {
      if (spec.starts_as_variable) {
        slots_.push_back(value_.Clone());
      } else {
        slots_.emplace_back(DTypeOf<T>(), shape);
        std::ranges::fill(slots_.back().template as<T>(), spec.initial_value);
      }
      views_.push_back(slots_.back().view());
    }
  }

  void Step(float learning_rate, const std::vector<T>& gradient) {
    const TensorView view{DTypeOf<T>(), value_.shape(), gradient.data()};
    rule_->Apply({.old_value = value_.view(),
                  .gradients = absl::MakeConstSpan(&view, 1),
                  .new_value = next_.view(),
                  .slots = views_,
                  .learning_rate = learning_rate,
                  .scalars = scalars_,
                  .version = version_ + 1});
    std::swap(value_, next_);
    Advance();
  }

  void StepRows(float learning_rate, const std::vector<int64_t>& rows,
                const std::vector<T>& gradient) {
    const Shape shape({static_cast<int64_t>(rows.size()), width_});
    const TensorView view{DTypeOf<T>(), shape, gradient.data()};
    rule_->ApplyRows({value_.view(), rows, view, views_, learning_rate, scalars_, version_ + 1});
    Advance();
  }

  std::vector<T> value() const { return Elements(value_); }
  std::vector<T> slot(int index) const { return Elements(slots_[index]); }
  const std::vector<float>& scalars() const { return scalars_; }

 private:
  static std::vector<T> Elements(const Tensor& tensor) {
    const auto elements = tensor.template as<T>();
    return {elements.begin(), elements.end()};
  }
  void Advance() {
    rule_->AdvanceScalars(absl::MakeSpan(scalars_));
    ++version_;
  }

  const std::unique_ptr<const UpdateRule> rule_;
  const int64_t width_;
  std::vector<float> scalars_;
  int64_t version_ = 0;
  Tensor value_;
  Tensor next_;
  std::vector<Tensor> slots_;
  std::vector<MutableTensorView> views_;
};

}  // namespace lockstep::test
