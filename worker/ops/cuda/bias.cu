#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/bias.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::BFloat16;
using lockstep::worker::Relu;
using lockstep::worker::cuda::ColumnRows;
using lockstep::worker::cuda::ForEachColumn;
using lockstep::worker::cuda::Wide;

namespace {

template <typename T>
LOCKSTEP_DEVICE void AddBias(T* y, const float* bias, bool relu, int64_t rows, int64_t columns) {
  ForEachColumn(rows, columns, [=](int64_t column, const ColumnRows& own) {
    const float of_column = bias == nullptr ? 0.0f : bias[column];
    own.MapTo(y, [=](int64_t i) {
      const float sum = bias == nullptr ? Wide(y[i]) : Wide(y[i]) + of_column;
      return relu ? Relu(sum) : sum;
    });
  });
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_bias(float* y, const float* bias, bool relu, int64_t rows,
                                   int64_t columns) {
  AddBias(y, bias, relu, rows, columns);
}
LOCKSTEP_KERNEL void lockstep_bias_bf16(BFloat16* y, const float* bias, bool relu, int64_t rows,
                                        int64_t columns) {
  AddBias(y, bias, relu, rows, columns);
}
