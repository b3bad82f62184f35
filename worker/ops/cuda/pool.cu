#include <cmath>

#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/pool.cuh"

using lockstep::BFloat16;
using lockstep::worker::cuda::ForEachElement;
using lockstep::worker::cuda::kLanesOf;
using lockstep::worker::cuda::Lanes;
using lockstep::worker::cuda::Load;
using lockstep::worker::cuda::Store;
using lockstep::worker::cuda::Wide;

namespace {

// Of the element i of images [batch, size[0], size[1], channels].
struct Place {
  int32_t example;
  int32_t row;
  int32_t column;
  int32_t channel;
};

LOCKSTEP_DEVICE Place PlaceOf(int32_t i, const int32_t* size, int32_t channels) {
  const int32_t pixel = i / channels;
  const int32_t line = pixel / size[1];
  return {line / size[0], line % size[0], pixel % size[1], i % channels};
}

LOCKSTEP_DEVICE int32_t IndexOf(const Place& place, const int32_t* size, int32_t channels) {
  return ((place.example * size[0] + place.row) * size[1] + place.column) * channels +
         place.channel;
}

// [begin, end)
struct Range {
  int32_t begin;
  int32_t end;
};

// The rows (dimension 0) or columns (1) of the image in the window of an output.
LOCKSTEP_DEVICE Range InputsOf(int32_t output, const LockstepPool& pool, int dimension) {
  const int32_t begin = output * pool.stride[dimension] - pool.pad[dimension];
  const int32_t end = begin + pool.extent[dimension];
  return {begin < 0 ? 0 : begin, end < pool.input[dimension] ? end : pool.input[dimension]};
}

// The outputs whose window has this row or column of the image.
LOCKSTEP_DEVICE Range OutputsOf(int32_t input, const LockstepPool& pool, int dimension) {
  const int32_t stride = pool.stride[dimension];
  const int32_t last = input + pool.pad[dimension];
  const int32_t first = last - pool.extent[dimension] + 1;
  const int32_t end = last / stride + 1;
  return {first <= 0 ? 0 : (first + stride - 1) / stride,
          end < pool.output[dimension] ? end : pool.output[dimension]};
}

LOCKSTEP_DEVICE int64_t NumOutputs(const LockstepPool& pool) {
  return int64_t{pool.batch} * pool.output[0] * pool.output[1] * pool.channels;
}
LOCKSTEP_DEVICE int64_t NumInputs(const LockstepPool& pool) {
  return int64_t{pool.batch} * pool.input[0] * pool.input[1] * pool.channels;
}

// Calls body(i) for the first element i of each thread's channels: kLanesOf where that divides the
// number of channels, so that their place, which takes divisions, is found once.
template <int kCount, typename Body>
LOCKSTEP_DEVICE void ForEachLanes(int64_t n, const Body& body) {
  ForEachElement(n / kCount, [=](int64_t group) { body(static_cast<int32_t>(group) * kCount); });
}

// Where in its window the row and column of the image are.
LOCKSTEP_DEVICE int32_t PlaceInWindow(const Place& output, int32_t row, int32_t column,
                                      const LockstepPool& pool) {
  const int32_t in_row = row - (output.row * pool.stride[0] - pool.pad[0]);
  const int32_t in_column = column - (output.column * pool.stride[1] - pool.pad[1]);
  return in_row * pool.extent[1] + in_column;
}

template <typename T, int kCount>
LOCKSTEP_DEVICE Lanes<T, kCount> Rounded(const Lanes<float, kCount>& values) {
  Lanes<T, kCount> rounded;
  LOCKSTEP_UNROLL
  for (int32_t lane = 0; lane < kCount; ++lane) rounded.at[lane] = static_cast<T>(values.at[lane]);
  return rounded;
}

template <int kCount, typename T>
LOCKSTEP_DEVICE void MaxPool(T* y, int32_t* places, const T* x, const LockstepPool& pool) {
  ForEachLanes<kCount>(NumOutputs(pool), [=](int32_t i) {
    const Place at = PlaceOf(i, pool.output, pool.channels);
    const Range rows = InputsOf(at.row, pool, 0);
    const Range columns = InputsOf(at.column, pool, 1);
    Lanes<float, kCount> largest;
    Lanes<int32_t, kCount> place;
    for (int32_t lane = 0; lane < kCount; ++lane) {
      largest.at[lane] = -INFINITY;
      place.at[lane] = PlaceInWindow(at, rows.begin, columns.begin, pool);
    }
    for (int32_t row = rows.begin; row < rows.end; ++row) {
      for (int32_t column = columns.begin; column < columns.end; ++column) {
        const int32_t from =
            IndexOf({at.example, row, column, at.channel}, pool.input, pool.channels);
        const auto values = Load<kCount>(x, from);
        for (int32_t lane = 0; lane < kCount; ++lane) {
          const float value = Wide(values.at[lane]);
          // Nothing is larger than a NaN, so it stays and is found.
          if (!(value > largest.at[lane] || std::isnan(value))) continue;
          largest.at[lane] = value;
          place.at[lane] = PlaceInWindow(at, row, column, pool);
        }
      }
    }
    Store(y, i, Rounded<T>(largest));
    if (places != nullptr) Store(places, i, place);
  });
}

// to = the sum of add(index of the output, its row and column, the element's place, sums) over the
// outputs whose window has the element of the image.
template <int kCount, typename T, typename Add>
LOCKSTEP_DEVICE void SumOverOutputs(T* to, const LockstepPool& pool, const Add& add) {
  ForEachLanes<kCount>(NumInputs(pool), [=](int32_t i) {
    const Place at = PlaceOf(i, pool.input, pool.channels);
    const Range rows = OutputsOf(at.row, pool, 0);
    const Range columns = OutputsOf(at.column, pool, 1);
    Lanes<float, kCount> sums;
    for (int32_t lane = 0; lane < kCount; ++lane) sums.at[lane] = 0;
    for (int32_t row = rows.begin; row < rows.end; ++row) {
      LOCKSTEP_NO_UNROLL
      for (int32_t column = columns.begin; column < columns.end; ++column) {
        const Place output = {at.example, row, column, at.channel};
        add(IndexOf(output, pool.output, pool.channels), output, at, &sums);
      }
    }
    Store(to, i, Rounded<T>(sums));
  });
}

template <int kCount, typename T>
LOCKSTEP_DEVICE void MaxPoolGradient(T* to, const int32_t* places, const T* gradient,
                                     const LockstepPool& pool) {
  SumOverOutputs<kCount>(
      to, pool,
      [=](int32_t output, const Place& window, const Place& at, Lanes<float, kCount>* sums) {
        const int32_t own = PlaceInWindow(window, at.row, at.column, pool);
        const auto largest = Load<kCount>(places, output);
        const auto gradients = Load<kCount>(gradient, output);
        for (int32_t lane = 0; lane < kCount; ++lane) {
          if (largest.at[lane] == own) sums->at[lane] += Wide(gradients.at[lane]);
        }
      });
}

template <int kCount, typename T>
LOCKSTEP_DEVICE void AveragePool(T* y, const T* x, const LockstepPool& pool) {
  ForEachLanes<kCount>(NumOutputs(pool), [=](int32_t i) {
    const Place at = PlaceOf(i, pool.output, pool.channels);
    const Range rows = InputsOf(at.row, pool, 0);
    const Range columns = InputsOf(at.column, pool, 1);
    Lanes<float, kCount> sums;
    for (int32_t lane = 0; lane < kCount; ++lane) sums.at[lane] = 0;
    for (int32_t row = rows.begin; row < rows.end; ++row) {
      for (int32_t column = columns.begin; column < columns.end; ++column) {
        const int32_t from =
            IndexOf({at.example, row, column, at.channel}, pool.input, pool.channels);
        const auto values = Load<kCount>(x, from);
        for (int32_t lane = 0; lane < kCount; ++lane) sums.at[lane] += Wide(values.at[lane]);
      }
    }
    const auto count = (rows.end - rows.begin) * (columns.end - columns.begin);
    for (int32_t lane = 0; lane < kCount; ++lane) sums.at[lane] /= static_cast<float>(count);
    Store(y, i, Rounded<T>(sums));
  });
}

template <int kCount, typename T>
LOCKSTEP_DEVICE void AveragePoolGradient(T* to, const T* gradient, const LockstepPool& pool) {
  SumOverOutputs<kCount>(
      to, pool, [=](int32_t output, const Place& window, const Place&, Lanes<float, kCount>* sums) {
        const Range rows = InputsOf(window.row, pool, 0);
        const Range columns = InputsOf(window.column, pool, 1);
        const int32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
        const auto gradients = Load<kCount>(gradient, output);
        for (int32_t lane = 0; lane < kCount; ++lane) {
          sums->at[lane] += Wide(gradients.at[lane]) / static_cast<float>(count);
        }
      });
}

template <typename T>
LOCKSTEP_DEVICE bool AreTogether(const LockstepPool& pool) {
  return pool.channels % kLanesOf<T> == 0;
}

template <typename T>
LOCKSTEP_DEVICE void RunMaxPool(T* y, int32_t* places, const T* x, const LockstepPool& pool) {
  if (AreTogether<T>(pool)) return MaxPool<kLanesOf<T>>(y, places, x, pool);
  MaxPool<1>(y, places, x, pool);
}
template <typename T>
LOCKSTEP_DEVICE void RunMaxPoolGradient(T* to, const int32_t* places, const T* gradient,
                                        const LockstepPool& pool) {
  if (AreTogether<T>(pool)) return MaxPoolGradient<kLanesOf<T>>(to, places, gradient, pool);
  MaxPoolGradient<1>(to, places, gradient, pool);
}
template <typename T>
LOCKSTEP_DEVICE void RunAveragePool(T* y, const T* x, const LockstepPool& pool) {
  if (AreTogether<T>(pool)) return AveragePool<kLanesOf<T>>(y, x, pool);
  AveragePool<1>(y, x, pool);
}
template <typename T>
LOCKSTEP_DEVICE void RunAveragePoolGradient(T* to, const T* gradient, const LockstepPool& pool) {
  if (AreTogether<T>(pool)) return AveragePoolGradient<kLanesOf<T>>(to, gradient, pool);
  AveragePoolGradient<1>(to, gradient, pool);
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_max_pool(float* y, int32_t* places, const float* x,
                                       LockstepPool pool) {
  RunMaxPool(y, places, x, pool);
}
LOCKSTEP_KERNEL void lockstep_max_pool_bf16(BFloat16* y, int32_t* places, const BFloat16* x,
                                            LockstepPool pool) {
  RunMaxPool(y, places, x, pool);
}

LOCKSTEP_KERNEL void lockstep_max_pool_gradient(float* to, const int32_t* places,
                                                const float* gradient, LockstepPool pool) {
  RunMaxPoolGradient(to, places, gradient, pool);
}
LOCKSTEP_KERNEL void lockstep_max_pool_gradient_bf16(BFloat16* to, const int32_t* places,
                                                     const BFloat16* gradient, LockstepPool pool) {
  RunMaxPoolGradient(to, places, gradient, pool);
}

LOCKSTEP_KERNEL void lockstep_average_pool(float* y, const float* x, LockstepPool pool) {
  RunAveragePool(y, x, pool);
}
LOCKSTEP_KERNEL void lockstep_average_pool_bf16(BFloat16* y, const BFloat16* x, LockstepPool pool) {
  RunAveragePool(y, x, pool);
}

LOCKSTEP_KERNEL void lockstep_average_pool_gradient(float* to, const float* gradient,
                                                    LockstepPool pool) {
  RunAveragePoolGradient(to, gradient, pool);
}
LOCKSTEP_KERNEL void lockstep_average_pool_gradient_bf16(BFloat16* to, const BFloat16* gradient,
                                                         LockstepPool pool) {
  RunAveragePoolGradient(to, gradient, pool);
}
