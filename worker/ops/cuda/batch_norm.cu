#include <cmath>

#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/batch_norm.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::BFloat16;
using lockstep::worker::Relu;
using lockstep::worker::ReluGradient;
using lockstep::worker::cuda::BlockSumOfParts;
using lockstep::worker::cuda::ColumnRows;
using lockstep::worker::cuda::ForEachColumn;
using lockstep::worker::cuda::MapElements;
using lockstep::worker::cuda::SumColumnParts;
using lockstep::worker::cuda::Wide;

namespace {

LOCKSTEP_DEVICE float InverseDeviation(float variance, float epsilon) {
  return 1 / std::sqrt(variance + epsilon);
}

LOCKSTEP_DEVICE float BeforeRelu(float y, float gradient, bool relu) {
  return relu ? ReluGradient(y, gradient) : gradient;
}

// What is known of a channel.
struct Channel {
  float inverse;
  float center;
  float factor;
  float offset;

  // As it was computed going forward, so that the result need not be read again.
  LOCKSTEP_DEVICE float Normalised(float x) const { return (x - center) * factor + offset; }
};

LOCKSTEP_DEVICE Channel ChannelOf(int64_t c, const float* mean, const float* variance,
                                  const float* gamma, const float* beta, float epsilon) {
  const float inverse = InverseDeviation(variance[c], epsilon);
  return {inverse, mean[c], gamma[c] * inverse, beta[c]};
}

template <typename T>
LOCKSTEP_DEVICE void SumMoments(double* parts, const T* x, int64_t num_parts, int64_t rows,
                                int64_t channels) {
  SumColumnParts<2>(parts, num_parts, rows, channels, [=](int64_t i, int64_t, double* sums) {
    const double value = static_cast<double>(Wide(x[i]));
    sums[0] += value;
    sums[1] += value * value;
  });
}

template <typename T>
LOCKSTEP_DEVICE void Normalise(T* y, const T* x, const float* mean, const float* variance,
                               const float* gamma, const float* beta, float epsilon, bool relu,
                               int64_t rows, int64_t channels) {
  ForEachColumn(rows, channels, [=](int64_t c, const ColumnRows& own) {
    const Channel channel = ChannelOf(c, mean, variance, gamma, beta, epsilon);
    own.MapTo(y, [=](int64_t i) {
      const float value = channel.Normalised(Wide(x[i]));
      return relu ? Relu(value) : value;
    });
  });
}

template <typename T>
LOCKSTEP_DEVICE void SumGradients(double* parts, const T* x, const T* gradient, const float* mean,
                                  const float* variance, const float* gamma, const float* beta,
                                  float epsilon, bool relu, int64_t num_parts, int64_t rows,
                                  int64_t channels) {
  SumColumnParts<2>(parts, num_parts, rows, channels, [=](int64_t i, int64_t c, double* sums) {
    const Channel channel = ChannelOf(c, mean, variance, gamma, beta, epsilon);
    const float value = Wide(x[i]);
    const float before_relu = BeforeRelu(channel.Normalised(value), Wide(gradient[i]), relu);
    sums[0] += static_cast<double>(before_relu);
    sums[1] += static_cast<double>(before_relu * ((value - channel.center) * channel.inverse));
  });
}

template <typename T>
LOCKSTEP_DEVICE void Gradient(T* to, const T* x, const T* gradient, const float* mean,
                              const float* variance, const float* gamma, const float* beta,
                              const float* gamma_gradient, const float* beta_gradient,
                              float epsilon, bool relu, int64_t rows, int64_t channels) {
  const float n = static_cast<float>(rows);
  ForEachColumn(rows, channels, [=](int64_t c, const ColumnRows& own) {
    const Channel channel = ChannelOf(c, mean, variance, gamma, beta, epsilon);
    const float of_beta = beta_gradient[c];
    const float of_gamma = gamma_gradient[c];
    own.MapTo(to, [=](int64_t i) {
      const float value = Wide(x[i]);
      const float normal = (value - channel.center) * channel.inverse;
      const float of_moments = (of_beta + normal * of_gamma) / n;
      const float before_relu = BeforeRelu(channel.Normalised(value), Wide(gradient[i]), relu);
      return channel.factor * (before_relu - of_moments);
    });
  });
}

template <typename T>
LOCKSTEP_DEVICE void FrozenGradient(T* to, const T* y, const T* gradient, const float* variance,
                                    const float* gamma, float epsilon, bool relu, int64_t rows,
                                    int64_t channels) {
  ForEachColumn(rows, channels, [=](int64_t c, const ColumnRows& own) {
    const float factor = gamma[c] * InverseDeviation(variance[c], epsilon);
    own.MapTo(to,
              [=](int64_t i) { return BeforeRelu(Wide(y[i]), Wide(gradient[i]), relu) * factor; });
  });
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_moment_parts(double* parts, const float* x, int64_t num_parts,
                                           int64_t rows, int64_t channels) {
  SumMoments(parts, x, num_parts, rows, channels);
}
LOCKSTEP_KERNEL void lockstep_moment_parts_bf16(double* parts, const BFloat16* x, int64_t num_parts,
                                                int64_t rows, int64_t channels) {
  SumMoments(parts, x, num_parts, rows, channels);
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
  Normalise(y, x, mean, variance, gamma, beta, epsilon, relu, rows, channels);
}
LOCKSTEP_KERNEL void lockstep_batch_norm_bf16(BFloat16* y, const BFloat16* x, const float* mean,
                                              const float* variance, const float* gamma,
                                              const float* beta, float epsilon, bool relu,
                                              int64_t rows, int64_t channels) {
  Normalise(y, x, mean, variance, gamma, beta, epsilon, relu, rows, channels);
}

LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_parts(double* parts, const float* x,
                                                        const float* gradient, const float* mean,
                                                        const float* variance, const float* gamma,
                                                        const float* beta, float epsilon, bool relu,
                                                        int64_t num_parts, int64_t rows,
                                                        int64_t channels) {
  SumGradients(parts, x, gradient, mean, variance, gamma, beta, epsilon, relu, num_parts, rows,
               channels);
}
LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_parts_bf16(
    double* parts, const BFloat16* x, const BFloat16* gradient, const float* mean,
    const float* variance, const float* gamma, const float* beta, float epsilon, bool relu,
    int64_t num_parts, int64_t rows, int64_t channels) {
  SumGradients(parts, x, gradient, mean, variance, gamma, beta, epsilon, relu, num_parts, rows,
               channels);
}

LOCKSTEP_KERNEL void lockstep_batch_norm_gradient(float* to, const float* x, const float* gradient,
                                                  const float* mean, const float* variance,
                                                  const float* gamma, const float* beta,
                                                  const float* gamma_gradient,
                                                  const float* beta_gradient, float epsilon,
                                                  bool relu, int64_t rows, int64_t channels) {
  Gradient(to, x, gradient, mean, variance, gamma, beta, gamma_gradient, beta_gradient, epsilon,
           relu, rows, channels);
}
LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_bf16(
    BFloat16* to, const BFloat16* x, const BFloat16* gradient, const float* mean,
    const float* variance, const float* gamma, const float* beta, const float* gamma_gradient,
    const float* beta_gradient, float epsilon, bool relu, int64_t rows, int64_t channels) {
  Gradient(to, x, gradient, mean, variance, gamma, beta, gamma_gradient, beta_gradient, epsilon,
           relu, rows, channels);
}

LOCKSTEP_KERNEL void lockstep_frozen_batch_norm_gradient(float* to, const float* y,
                                                         const float* gradient,
                                                         const float* variance, const float* gamma,
                                                         float epsilon, bool relu, int64_t rows,
                                                         int64_t channels) {
  FrozenGradient(to, y, gradient, variance, gamma, epsilon, relu, rows, channels);
}
LOCKSTEP_KERNEL void lockstep_frozen_batch_norm_gradient_bf16(
    BFloat16* to, const BFloat16* y, const BFloat16* gradient, const float* variance,
    const float* gamma, float epsilon, bool relu, int64_t rows, int64_t channels) {
  FrozenGradient(to, y, gradient, variance, gamma, epsilon, relu, rows, channels);
}

LOCKSTEP_KERNEL void lockstep_follow(float* to, const float* old, const float* of_batch,
                                     float momentum, int64_t n) {
  MapElements(
      to, n, [=](float before, float now) { return momentum * before + (1 - momentum) * now; }, old,
      of_batch);
}
