// RecurrentOp is the common part of LSTM and GRU on a GPU: products over all steps at once where
// possible, and the loops over the steps.
#pragma once

#include <cstddef>

#include "worker/ops/cuda/add.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/fill.cuh"
#include "worker/ops/cuda/inner_product.h"
#include "worker/ops/cuda/recurrent.cuh"
#include "worker/ops/cuda/swap_outer.cuh"
#include "worker/ops/recurrent.h"

namespace lockstep::worker::cuda {

// The differences between the kinds of recurrent layers.
struct RecurrentKind {
  int gates = 1;  // side by side in a row, each of `units` numbers
  // The product of the state stays apart from that of the input, with a bias and a gradient of its
  // own.
  bool reset_after = false;
};

// The products, memory and kernels of one layer. Memory is [time, batch, width], so that a step is
// contiguous.
struct RecurrentParts {
  static absl::StatusOr<RecurrentParts> Make(CudaContext* context, const RecurrentOptions& options,
                                             const RecurrentKind& kind);

  InnerProduct input_product;   // of all steps
  InnerProduct state_product;   // of one
  InnerProduct state_products;  // of all, for the gradient of the kernel
  ColumnSums bias_gradient;
  Kernel<decltype(lockstep_swap_outer)> swap_outer;
  Kernel<decltype(lockstep_add_rows)> add_rows;
  Kernel<decltype(lockstep_add)> add;
  Kernel<decltype(lockstep_fill)> fill;
  DeviceBuffer x;            // [time, batch, inputs]
  DeviceBuffer gates;        // [time, batch, gates * units]
  DeviceBuffer state_gates;  // the same with reset_after; else [batch, gates * units]
  DeviceBuffer hidden;       // [time + 1, batch, units]
  DeviceBuffer dh;           // [batch, units]; null without training, as below
  DeviceBuffer carried;      // [batch, units]: dh through the state's product
};

class RecurrentOp : public Op {
 public:
  absl::Status Forward(const ForwardArgs& args, Stream* stream) final;
  absl::Status Backward(const BackwardArgs& args, Stream* stream) final;

 protected:
  RecurrentOp(const RecurrentOptions& options, const RecurrentKind& kind, RecurrentParts parts);

  int64_t batch() const { return options_.batch; }
  int64_t units() const { return options_.units; }
  int64_t state_elements() const { return batch() * units(); }
  bool has_initial_states() const { return options_.initial_states; }

  // Holds the input's product before Activate. Activate and Differentiate write their results here.
  float* Gates(int64_t step) const { return At(parts_.gates, step * batch() * width_); }
  // The state's product. Kept for the step's Differentiate only with reset_after.
  float* StateGates(int64_t step) const {
    return At(parts_.state_gates, kind_.reset_after ? step * batch() * width_ : 0);
  }
  // The output before `step`: 0 is the initial state.
  float* Hidden(int64_t step) const { return At(parts_.hidden, step * state_elements()); }
  static float* At(const DeviceBuffer& buffer, int64_t element) {
    return reinterpret_cast<float*>(buffer.get()) + element;
  }

  // Copies a state's input; null: writes zeros.
  void CopyState(const TensorView* from, float* to, Stream* stream) const;
  void Zero(float* to, Stream* stream) const;

  // Fills what an op needs besides Hidden(0) before the first step.
  virtual void BeginForward(const ForwardArgs& args, Stream* stream) = 0;
  // Turns Gates(step) and StateGates(step) into Hidden(step + 1).
  virtual void Activate(int64_t step, Stream* stream) = 0;

  virtual void BeginBackward(Stream* stream) = 0;
  // `gradient` is that of Hidden(step + 1). Writes the gradients of the sums before the activations
  // to Gates(step) and, with reset_after, StateGates(step). Writes to `gradient` the part of
  // Hidden(step)'s gradient that does not pass through the state's product.
  virtual void Differentiate(int64_t step, float* gradient, Stream* stream) = 0;
  // Writes the gradients of the initial states other than Hidden(0).
  virtual void EndBackward(const BackwardArgs& args, Stream* stream) = 0;

 private:
  enum Variable { kKernel, kRecurrentKernel, kBias };

  // dh += the output's gradient of the step.
  void AddOutputGradient(const MutableTensorView& gradient, int64_t step, Stream* stream) const;
  absl::Status DifferentiateSteps(const BackwardArgs& args, Stream* stream);
  absl::Status WriteVariableGradients(const BackwardArgs& args, Stream* stream) const;

  const RecurrentOptions options_;
  const RecurrentKind kind_;
  const int64_t width_;  // of a row of gates
  const RecurrentParts parts_;
};

}  // namespace lockstep::worker::cuda
