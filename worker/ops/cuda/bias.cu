#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/bias.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::worker::Relu;
using lockstep::worker::cuda::ForEachInColumns;

LOCKSTEP_KERNEL void lockstep_bias(float* y, const float* bias, bool relu, int64_t rows,
                                   int64_t columns) {
  ForEachInColumns(rows, columns, [=](int64_t i, int64_t, int64_t column) {
    const float sum = bias == nullptr ? y[i] : y[i] + bias[column];
    y[i] = relu ? Relu(sum) : sum;
  });
}
