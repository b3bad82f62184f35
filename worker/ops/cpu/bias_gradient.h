// What remains of a layer's backward pass around its product: the relu behind it and the bias.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::worker::cpu {

// In one pass over the gradient [rows, channels] of the layer's output. The sums run in an order
// that depends on the sizes and the number of threads alone.
class BiasGradient {
 public:
  BiasGradient() = default;
  // For the number of threads of the current device.
  BiasGradient(int64_t rows, int64_t channels);

  // Where `output` is given: gradient = output > 0 ? gradient : 0. Where `bias` is given: its
  // gradient, the sum over the rows.
  void Run(const float* output, float* gradient, float* bias);

 private:
  void RunPart(int part, int64_t begin, int64_t end, const float* output, float* gradient);

  int64_t rows_ = 0;
  int64_t channels_ = 0;
  std::vector<std::vector<double>> sums_;  // per part; [channels]
};

}  // namespace lockstep::worker::cpu
