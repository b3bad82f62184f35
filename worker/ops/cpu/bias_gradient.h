// BiasGradient computes the relu and bias parts of a layer's backward pass, without its product.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::worker::cpu {

// Makes one pass over the gradient [rows, channels] of the layer's output. The order of the sums
// depends only on the sizes and the number of threads.
class BiasGradient {
 public:
  BiasGradient() = default;
  // For the number of threads of the current device.
  BiasGradient(int64_t rows, int64_t channels);

  // With `output`: gradient = output > 0 ? gradient : 0. With `bias`: writes there its gradient,
  // the sum over the rows. Both may be null.
  void Run(const float* output, float* gradient, float* bias);

 private:
  void RunPart(int part, int64_t begin, int64_t end, const float* output, float* gradient);

  int64_t rows_ = 0;
  int64_t channels_ = 0;
  std::vector<std::vector<double>> sums_;  // per part; [channels]
};

}  // namespace lockstep::worker::cpu
