// RecurrentOp is the common part of LSTM and GRU: products over all steps at once where possible,
// and the loops over the steps.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/ops/cpu/bias_gradient.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/inner_product.h"
#include "worker/ops/recurrent.h"

namespace lockstep::worker::cpu {

// Works on copies whose first dimension is time, so that a step is contiguous memory. Each pointer
// below is [batch, width] of one step. A row of gates has `gates` gates side by side, each of
// units() numbers.
class RecurrentOp : public CpuOp {
 protected:
  // `reset_after`: the product of the state stays apart from that of the input, with a bias and a
  // gradient of its own.
  RecurrentOp(OneDnn* onednn, const RecurrentOptions& options, int gates, bool reset_after);

  int64_t batch() const { return options_.batch; }
  int64_t units() const { return options_.units; }
  bool has_initial_states() const { return options_.initial_states; }
  bool training() const { return options_.training; }

  // Holds the input's product before Activate. Activate and Differentiate write their results here.
  float* Gates(int64_t step) { return &gates_[step * batch() * width_]; }
  // The state's product. Kept for the step's Differentiate only with reset_after.
  float* StateGates(int64_t step) {
    return &state_gates_[reset_after_ ? step * batch() * width_ : 0];
  }
  // The output before `step`: 0 is the initial state.
  float* Hidden(int64_t step) { return &hidden_[step * batch() * units()]; }

  // Copies a state's input; null: writes zeros.
  void CopyState(const TensorView* from, float* to) const;

  // Fills what an op needs besides Hidden(0) before the first step.
  virtual void BeginForward(const ForwardArgs& args) = 0;
  // Turns Gates(step) and StateGates(step) into Hidden(step + 1), for rows [begin, end).
  virtual void Activate(int64_t step, int64_t begin, int64_t end) = 0;

  virtual void BeginBackward() = 0;
  // `gradient` is that of Hidden(step + 1). Writes the gradients of the sums before the activations
  // to Gates(step) and, with reset_after, StateGates(step). Writes to `gradient` the part of
  // Hidden(step)'s gradient that does not pass through the state's product.
  virtual void Differentiate(int64_t step, int64_t begin, int64_t end, float* gradient) = 0;
  // Writes the gradients of the initial states other than Hidden(0).
  virtual void EndBackward(const BackwardArgs& args) = 0;

 private:
  enum Variable { kKernel, kRecurrentKernel, kBias };

  void RunForward(const ForwardArgs& args) final;
  void RunBackward(const BackwardArgs& args) final;
  // dh += the output's gradient of the step.
  void AddOutputGradient(const MutableTensorView& gradient, int64_t step);
  void WriteVariableGradients(const BackwardArgs& args);
  int64_t RowGrain() const;

  const RecurrentOptions options_;
  const int64_t width_;  // of a row of gates
  const bool reset_after_;
  InnerProduct input_product_;   // of all steps
  InnerProduct state_product_;   // of one
  InnerProduct state_products_;  // of all, for the gradient of the kernel
  BiasGradient bias_gradient_;
  std::vector<float> x_;            // [time, batch, inputs]
  std::vector<float> gates_;        // [time, batch, width]
  std::vector<float> state_gates_;  // the same with reset_after; else [batch, width]
  std::vector<float> hidden_;       // [time + 1, batch, units]
  std::vector<float> dh_;           // [batch, units]
  std::vector<float> carried_;      // [batch, units]: dh through the state's product
};

}  // namespace lockstep::worker::cpu
