// A convolution and its gradients as loops in double, for a cuDNN that the host imitates.
#pragma once

#include <array>
#include <cstdint>

#include "tests/support/cuda/fake_elements.h"

namespace lockstep::test {

// As cuDNN describes them: images, channels, height, width; filters instead of images.
struct FakeTensor {
  FakeElements elements;
  std::array<int64_t, 4> dimensions = {};
  std::array<int64_t, 4> strides = {};  // elements
};

struct FakeConvolution {
  int operation = 0;  // worker::cuda::kForwardDescriptor, ...: which tensor is the result
  FakeTensor input;
  FakeTensor filter;
  FakeTensor output;
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};  // before the first row and column

  void Run() const;
};

}  // namespace lockstep::test
