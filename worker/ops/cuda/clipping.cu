#include <cmath>

#include "common/optimizer/clipping_element.h"
#include "worker/ops/cuda/block_sum.cuh"
#include "worker/ops/cuda/clipping.cuh"
#include "worker/ops/cuda/element_loop.cuh"

using lockstep::ClippedValue;
using lockstep::GlobalNormScale;
using lockstep::NormDivisor;
using lockstep::worker::cuda::BlockSum;
using lockstep::worker::cuda::BlockSumOf;
using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_clip_value(float* x, float limit, int64_t n) {
  ForEachElement(n, [=](int64_t i) { x[i] = ClippedValue(x[i], -limit, limit); });
}

LOCKSTEP_KERNEL void lockstep_square_parts(double* parts, const float* x, int64_t n) {
  double sum = 0;
  ForEachElement(n, [&](int64_t i) {
    const double value = x[i];
    sum += value * value;
  });
  sum = BlockSum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

LOCKSTEP_KERNEL void lockstep_sum_parts(double* sum, const double* parts, int64_t count) {
  const double total = BlockSumOf(parts, count);
  if (threadIdx.x == 0) *sum = total;
}

LOCKSTEP_KERNEL void lockstep_norm_divisor(float* divisor, const double* sum, float limit) {
  ForEachElement(
      1, [=](int64_t) { *divisor = NormDivisor(std::sqrt(static_cast<float>(*sum)), limit); });
}

LOCKSTEP_KERNEL void lockstep_global_norm_scale(float* scale, const double* sums, int64_t tensors,
                                                float limit) {
  ForEachElement(1, [=](int64_t) {
    // As TensorFlow adds up tf.nn.l2_loss of each tensor.
    float halves = 0;
    for (int64_t i = 0; i < tensors; ++i) halves += static_cast<float>(sums[i] / 2);
    *scale = GlobalNormScale(std::sqrt(halves * 2), limit);
  });
}

LOCKSTEP_KERNEL void lockstep_clip_norm(float* x, const float* divisor, float limit, int64_t n) {
  ForEachElement(n, [=](int64_t i) { x[i] = x[i] * limit / *divisor; });
}

LOCKSTEP_KERNEL void lockstep_clip_global_norm(float* x, const float* scale, int64_t n) {
  ForEachElement(n, [=](int64_t i) { x[i] *= *scale; });
}
