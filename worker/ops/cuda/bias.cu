#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/bias.cuh"
#include "worker/ops/cuda/column_loop.cuh"

using lockstep::BFloat16;
using lockstep::worker::Relu;
using lockstep::worker::cuda::ColumnRows;
using lockstep::worker::cuda::ForEachColumn;

namespace {

template <typename T>
LOCKSTEP_DEVICE void AddBias(T* y, const float* bias, bool relu, int64_t rows, int64_t columns) {
  const auto add = [=]<int kCount>(const ColumnRows<kCount>& own) {
    float of_column[kCount];
    LOCKSTEP_UNROLL
    for (int lane = 0; lane < kCount; ++lane) {
      of_column[lane] = bias == nullptr ? 0.0f : bias[own.column + lane];
    }
    own.MapTo(
        y,
        [&](int lane, float value) {
          const float sum = bias == nullptr ? value : value + of_column[lane];
          return relu ? Relu(sum) : sum;
        },
        y);
  };
  ForEachColumn(rows, columns, add, y);
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
