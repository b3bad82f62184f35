#include <cmath>

#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/batch_norm.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::worker::Relu;
using lockstep::worker::ReluGradient;
using lockstep::worker::cuda::BlockSumOfParts;
using lockstep::worker::cuda::ColumnRows;
using lockstep::worker::cuda::ForEachColumn;
using lockstep::worker::cuda::MapElements;
using lockstep::worker::cuda::SumColumnParts;

namespace {

LOCKSTEP_DEVICE float InverseDeviation(float variance, float epsilon) {
  return 1 / std::sqrt(variance + epsilon);
}

LOCKSTEP_DEVICE float BeforeRelu(float y, float gradient, bool relu) {
  return relu ? ReluGradient(y, gradient) : gradient;
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_moment_parts(double* parts, const float* x, int64_t num_parts,
                                           int64_t rows, int64_t channels) {
  SumColumnParts<2>(parts, num_parts, rows, channels, [=](int64_t i, int64_t, double* sums) {
    const double value = x[i];
    sums[0] += value;
    sums[1] += value * value;
  });
}

LOCKSTEP_KERNEL void lockstep_moments(float* mean, float* variance, const double* parts,
                                      int64_t num_parts, int64_t rows, int64_t channels) {
  const double n = static_cast<double>(rows);
  for (int64_t c = blockIdx.x; c < channels; c += gridDim.x) {
    const double of_x = BlockSumOfParts(parts, num_parts, channels, c) / n;
    const double of_squares =
        BlockSumOfParts(parts + num_parts * channels, num_parts, channels, c) / n;
    if (threadIdx.x != 0) continue;
    // A square of 24 bits is exact in double, so the difference of large numbers is no loss here.
    const double difference = of_squares - of_x * of_x;
    mean[c] = static_cast<float>(of_x);
    variance[c] = difference < 0 ? 0.0f : static_cast<float>(difference);
  }
}

LOCKSTEP_KERNEL void lockstep_batch_norm(float* y, const float* x, const float* mean,
                                         const float* variance, const float* gamma,
                                         const float* beta, float epsilon, bool relu, int64_t rows,
                                         int64_t channels) {
  ForEachColumn(rows, channels, [=](int64_t c, const ColumnRows& own) {
    const float factor = gamma[c] * InverseDeviation(variance[c], epsilon);
    const float center = mean[c];
    const float offset = beta[c];
    own.MapTo(y, [=](int64_t i) {
      const float value = (x[i] - center) * factor + offset;
      return relu ? Relu(value) : value;
    });
  });
}

LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_parts(double* parts, const float* x,
                                                        const float* y, const float* gradient,
                                                        const float* mean, const float* variance,
                                                        float epsilon, bool relu, int64_t num_parts,
                                                        int64_t rows, int64_t channels) {
  SumColumnParts<2>(parts, num_parts, rows, channels, [=](int64_t i, int64_t c, double* sums) {
    const float before_relu = BeforeRelu(y[i], gradient[i], relu);
    const float normal = (x[i] - mean[c]) * InverseDeviation(variance[c], epsilon);
    sums[0] += before_relu;
    sums[1] += before_relu * normal;
  });
}

LOCKSTEP_KERNEL void lockstep_batch_norm_gradient(float* to, const float* x, const float* y,
                                                  const float* gradient, const float* mean,
                                                  const float* variance, const float* gamma,
                                                  const float* gamma_gradient,
                                                  const float* beta_gradient, float epsilon,
                                                  bool relu, int64_t rows, int64_t channels) {
  const float n = static_cast<float>(rows);
  ForEachColumn(rows, channels, [=](int64_t c, const ColumnRows& own) {
    const float inverse = InverseDeviation(variance[c], epsilon);
    const float center = mean[c];
    const float factor = gamma[c] * inverse;
    const float of_beta = beta_gradient[c];
    const float of_gamma = gamma_gradient[c];
    own.MapTo(to, [=](int64_t i) {
      const float normal = (x[i] - center) * inverse;
      const float of_moments = (of_beta + normal * of_gamma) / n;
      return factor * (BeforeRelu(y[i], gradient[i], relu) - of_moments);
    });
  });
}

LOCKSTEP_KERNEL void lockstep_frozen_batch_norm_gradient(float* to, const float* y,
                                                         const float* gradient,
                                                         const float* variance, const float* gamma,
                                                         float epsilon, bool relu, int64_t rows,
                                                         int64_t channels) {
  ForEachColumn(rows, channels, [=](int64_t c, const ColumnRows& own) {
    const float factor = gamma[c] * InverseDeviation(variance[c], epsilon);
    own.MapTo(to, [=](int64_t i) { return BeforeRelu(y[i], gradient[i], relu) * factor; });
  });
}

LOCKSTEP_KERNEL void lockstep_follow(float* to, const float* old, const float* of_batch,
                                     float momentum, int64_t n) {
  MapElements(
      to, n, [=](float before, float now) { return momentum * before + (1 - momentum) * now; }, old,
      of_batch);
}
