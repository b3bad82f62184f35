#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/bias.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::worker::Relu;
using lockstep::worker::cuda::ColumnRows;
using lockstep::worker::cuda::ForEachColumn;

LOCKSTEP_KERNEL void lockstep_bias(float* y, const float* bias, bool relu, int64_t rows,
                                   int64_t columns) {
  ForEachColumn(rows, columns, [=](int64_t column, const ColumnRows& own) {
    const float of_column = bias == nullptr ? 0.0f : bias[column];
    own.MapTo(y, [=](int64_t i) {
      const float sum = bias == nullptr ? y[i] : y[i] + of_column;
      return relu ? Relu(sum) : sum;
    });
  });
}
