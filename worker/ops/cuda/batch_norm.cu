#include <cmath>

#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/batch_norm.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::BFloat16;
using lockstep::worker::Relu;
using lockstep::worker::ReluGradient;
using lockstep::worker::cuda::BlockSumOf;
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
  SumColumnParts<2>(
      parts, num_parts, rows, channels, [](int64_t) { return 0; },
      [](int, double* sums, float of_x) {
        const double value = static_cast<double>(of_x);
        sums[0] += value;
        sums[1] += value * value;
      },
      x);
}

template <typename T>
LOCKSTEP_DEVICE void Normalise(T* y, const T* x, const float* mean, const float* variance,
                               const float* gamma, const float* beta, float epsilon, bool relu,
                               int64_t rows, int64_t channels) {
  const auto normalise = [=]<int kCount>(const ColumnRows<kCount>& own) {
    Channel channel[kCount];
    LOCKSTEP_UNROLL
    for (int lane = 0; lane < kCount; ++lane) {
      channel[lane] = ChannelOf(own.column + lane, mean, variance, gamma, beta, epsilon);
    }
    own.MapTo(
        y,
        [&](int lane, float of_x) {
          const float value = channel[lane].Normalised(of_x);
          return relu ? Relu(value) : value;
        },
        x);
  };
  ForEachColumn(rows, channels, normalise, y, x);
}

template <typename T>
LOCKSTEP_DEVICE void SumGradients(double* parts, const T* x, const T* gradient, const float* mean,
                                  const float* variance, const float* gamma, const float* beta,
                                  float epsilon, bool relu, int64_t num_parts, int64_t rows,
                                  int64_t channels) {
  SumColumnParts<2>(
      parts, num_parts, rows, channels,
      [=](int64_t c) { return ChannelOf(c, mean, variance, gamma, beta, epsilon); },
      [=](const Channel& channel, double* sums, float of_x, float of_y) {
        const float before_relu = BeforeRelu(channel.Normalised(of_x), of_y, relu);
        sums[0] += static_cast<double>(before_relu);
        sums[1] += static_cast<double>(before_relu * ((of_x - channel.center) * channel.inverse));
      },
      x, gradient);
}

template <typename T>
LOCKSTEP_DEVICE void Gradient(T* to, const T* x, const T* gradient, const float* mean,
                              const float* variance, const float* gamma, const float* beta,
                              const float* gamma_gradient, const float* beta_gradient,
                              float epsilon, bool relu, int64_t rows, int64_t channels) {
  const float n = static_cast<float>(rows);
  const auto differentiate = [=]<int kCount>(const ColumnRows<kCount>& own) {
    Channel channel[kCount];
    float of_beta[kCount];  // means over the rows
    float of_gamma[kCount];
    LOCKSTEP_UNROLL
    for (int lane = 0; lane < kCount; ++lane) {
      const int64_t c = own.column + lane;
      channel[lane] = ChannelOf(c, mean, variance, gamma, beta, epsilon);
      of_beta[lane] = beta_gradient[c] / n;
      of_gamma[lane] = gamma_gradient[c] / n;
    }
    own.MapTo(
        to,
        [&](int lane, float of_x, float of_y) {
          const Channel& of = channel[lane];
          const float normal = (of_x - of.center) * of.inverse;
          const float of_moments = of_beta[lane] + normal * of_gamma[lane];
          return of.factor * (BeforeRelu(of.Normalised(of_x), of_y, relu) - of_moments);
        },
        x, gradient);
  };
  ForEachColumn(rows, channels, differentiate, to, x, gradient);
}

template <typename T>
LOCKSTEP_DEVICE void FrozenGradient(T* to, const T* y, const T* gradient, const float* variance,
                                    const float* gamma, float epsilon, bool relu, int64_t rows,
                                    int64_t channels) {
  const auto differentiate = [=]<int kCount>(const ColumnRows<kCount>& own) {
    float factor[kCount];
    LOCKSTEP_UNROLL
    for (int lane = 0; lane < kCount; ++lane) {
      const int64_t c = own.column + lane;
      factor[lane] = gamma[c] * InverseDeviation(variance[c], epsilon);
    }
    own.MapTo(
        to,
        [&](int lane, float value, float of_y) {
          return BeforeRelu(value, of_y, relu) * factor[lane];
        },
        y, gradient);
  };
  ForEachColumn(rows, channels, differentiate, to, y, gradient);
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
    const double of_x = BlockSumOf(parts + c * num_parts, num_parts) / n;
    const double of_squares = BlockSumOf(parts + (channels + c) * num_parts, num_parts) / n;
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
