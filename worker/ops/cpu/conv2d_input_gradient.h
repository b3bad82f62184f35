// The gradient of a convolution with respect to its input.
#pragma once

#include <vector>

#include "worker/ops/conv2d.h"
#include "worker/ops/cpu/onednn.h"

namespace lockstep::worker::cpu {

// Either oneDNN's own backward pass or, where that was measured faster, a forward convolution of
// the output's gradient with the kernel turned by 180 degrees and its two channel dimensions
// swapped: the same sums.
class Conv2DInputGradient {
 public:
  Conv2DInputGradient() = default;
  // `forward` describes the pass whose gradient it is. `onednn` outlives this. Throws what oneDNN
  // throws.
  Conv2DInputGradient(OneDnn* onednn, const Conv2DOptions& options,
                      const dnnl::convolution_forward::primitive_desc& forward);

  // Tensors as an Op's; `input_gradient` is overwritten.
  void Run(const float* output_gradient, const float* kernel, float* input_gradient);

 private:
  bool UseTurnedKernel(OneDnn* onednn, const Conv2DOptions& options);
  void UseBackwardPass(OneDnn* onednn, const Conv2DOptions& options,
                       const dnnl::convolution_forward::primitive_desc& forward);

  std::vector<float> turned_;  // [height, width, channels, filters], from the last pixel on
  int64_t pixels_ = 0;         // of the kernel
  int64_t floats_per_pixel_ = 0;
  Layout kernel_;
  Primitive product_;
  int output_argument_ = 0;  // which argument of the primitive the output's gradient is
  int input_argument_ = 0;
};

}  // namespace lockstep::worker::cpu
