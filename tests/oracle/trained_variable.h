// A variable with its slots, its average and the rule that changes them, as a parameter server has
// them, without the server.
#pragma once

#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/tensor.h"
#include "tests/reference/dense_accumulator.h"
#include "tests/reference/sparse_gradient.h"

namespace lockstep::oracle {

// A slot as the rule begins with it.
Tensor InitialSlot(const SlotSpec& spec, const Tensor& variable);

// Movable; not thread-safe.
class TrainedVariable {
 public:
  TrainedVariable(std::unique_ptr<const UpdateRule> rule, const MovingAverageOptions& averages,
                  Tensor initial);

  // One step of the rule and of the average.
  void Apply(const reference::DenseGradients& gradients, float learning_rate, GlobalStep step);
  void Apply(const reference::SparseGradient& gradient, float learning_rate, GlobalStep step);

  TensorView value() const { return value_.view(); }
  // A slot of the rule, by its number.
  TensorView slot(size_t number) const { return slots_.at(number).view(); }
  TensorView average() const { return slots_.back().view(); }

 private:
  std::unique_ptr<const UpdateRule> rule_;  // averaged: the average is the last slot
  Tensor value_;
  Tensor next_;
  std::vector<Tensor> slots_;
  std::vector<MutableTensorView> slot_views_;
  std::vector<float> scalars_;
};

}  // namespace lockstep::oracle
