#include "worker/ops/cuda/bias_gradient.cuh"
#include "worker/ops/cuda/element_loop.cuh"

using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_bias_gradient(float* bias_gradient, const float* gradient,
                                            int64_t rows, int64_t columns) {
  ForEachElement(columns, [=](int64_t column) {
    float sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += gradient[row * columns + column];
    bias_gradient[column] = sum;
  });
}
