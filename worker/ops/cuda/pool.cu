#include <cmath>

#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/pool.cuh"

using lockstep::worker::cuda::ForEachElement;

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

// The sum of part(index of the output, its row, its column) over the outputs whose window has
// element i of the image.
template <typename Part>
LOCKSTEP_DEVICE float SumOverOutputs(int32_t i, const LockstepPool& pool, const Part& part) {
  const Place at = PlaceOf(i, pool.input, pool.channels);
  const Range rows = OutputsOf(at.row, pool, 0);
  const Range columns = OutputsOf(at.column, pool, 1);
  float sum = 0;
  for (int32_t row = rows.begin; row < rows.end; ++row) {
    LOCKSTEP_NO_UNROLL
    for (int32_t column = columns.begin; column < columns.end; ++column) {
      const int32_t output =
          IndexOf({at.example, row, column, at.channel}, pool.output, pool.channels);
      sum += part(output, at, row, column);
    }
  }
  return sum;
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_max_pool(float* y, int32_t* places, const float* x,
                                       LockstepPool pool) {
  ForEachElement(NumOutputs(pool), [=](int64_t element) {
    const int32_t i = static_cast<int32_t>(element);
    const Place at = PlaceOf(i, pool.output, pool.channels);
    const Range rows = InputsOf(at.row, pool, 0);
    const Range columns = InputsOf(at.column, pool, 1);
    Place first = {at.example, rows.begin, columns.begin, at.channel};
    float largest = -INFINITY;
    for (int32_t row = rows.begin; row < rows.end; ++row) {
      for (int32_t column = columns.begin; column < columns.end; ++column) {
        const Place place = {at.example, row, column, at.channel};
        const float value = x[IndexOf(place, pool.input, pool.channels)];
        // Nothing is larger than a NaN, so it stays and is found.
        if (!(value > largest || std::isnan(value))) continue;
        largest = value;
        first = place;
      }
    }
    y[i] = largest;
    if (places == nullptr) return;
    const int32_t row = first.row - (at.row * pool.stride[0] - pool.pad[0]);
    const int32_t column = first.column - (at.column * pool.stride[1] - pool.pad[1]);
    places[i] = static_cast<int32_t>(row * pool.extent[1] + column);
  });
}

LOCKSTEP_KERNEL void lockstep_max_pool_gradient(float* to, const int32_t* places,
                                                const float* gradient, LockstepPool pool) {
  ForEachElement(NumInputs(pool), [=](int64_t element) {
    const int32_t i = static_cast<int32_t>(element);
    to[i] =
        SumOverOutputs(i, pool, [=](int32_t output, const Place& at, int32_t row, int32_t column) {
          const int32_t in_row = at.row - (row * pool.stride[0] - pool.pad[0]);
          const int32_t in_column = at.column - (column * pool.stride[1] - pool.pad[1]);
          const bool is_largest = places[output] == in_row * pool.extent[1] + in_column;
          return is_largest ? gradient[output] : 0.0f;
        });
  });
}

LOCKSTEP_KERNEL void lockstep_average_pool(float* y, const float* x, LockstepPool pool) {
  ForEachElement(NumOutputs(pool), [=](int64_t element) {
    const int32_t i = static_cast<int32_t>(element);
    const Place at = PlaceOf(i, pool.output, pool.channels);
    const Range rows = InputsOf(at.row, pool, 0);
    const Range columns = InputsOf(at.column, pool, 1);
    float sum = 0;
    for (int32_t row = rows.begin; row < rows.end; ++row) {
      for (int32_t column = columns.begin; column < columns.end; ++column) {
        sum += x[IndexOf({at.example, row, column, at.channel}, pool.input, pool.channels)];
      }
    }
    y[i] = sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
  });
}

LOCKSTEP_KERNEL void lockstep_average_pool_gradient(float* to, const float* gradient,
                                                    LockstepPool pool) {
  ForEachElement(NumInputs(pool), [=](int64_t element) {
    const int32_t i = static_cast<int32_t>(element);
    to[i] = SumOverOutputs(i, pool, [=](int32_t output, const Place&, int32_t row, int32_t column) {
      const Range rows = InputsOf(row, pool, 0);
      const Range columns = InputsOf(column, pool, 1);
      const int32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
      return gradient[output] / static_cast<float>(count);
    });
  });
}
