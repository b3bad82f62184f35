// y = x W + b by oneDNN, and its gradients, on plain matrices: measured as fast as its blocked
// layouts, whose kernels would have to be converted in each step.
#pragma once

#include "worker/ops/cpu/onednn.h"

namespace lockstep::worker::cpu {

struct InnerProductOptions {
  int64_t rows = 1;
  int64_t inputs = 1;
  int64_t outputs = 1;
  bool bias = true;
  bool training = true;
  bool kernel_gradient = true;
  bool input_gradient = true;
};

// x [rows, inputs], kernel [inputs, outputs], bias [outputs], y [rows, outputs]. Made with all
// memory that it needs. Calls throw what oneDNN throws, and overwrite their results.
class InnerProduct {
 public:
  InnerProduct() = default;
  InnerProduct(OneDnn* onednn, const InnerProductOptions& options);  // `onednn` outlives this

  // `bias` is read if the product was made with one.
  void Forward(const float* x, const float* kernel, const float* bias, float* y);
  // Where the product was made for training and for the gradient.
  void KernelGradient(const float* x, const float* y_gradient, float* kernel_gradient);
  void InputGradient(const float* kernel, const float* y_gradient, float* x_gradient);

 private:
  bool bias_ = false;
  Primitive forward_;
  Primitive backward_kernel_;
  Primitive backward_input_;
};

}  // namespace lockstep::worker::cpu
