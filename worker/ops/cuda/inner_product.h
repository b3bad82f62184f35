// y = x W + b of row-major matrices of fixed shapes, and its gradients, by cuBLASLt.
#pragma once

#include <cstdint>
#include <optional>

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/cuda_context.h"

namespace lockstep::worker::cuda {

struct InnerProductOptions {
  int64_t rows = 1;     // of x and y
  int64_t inputs = 1;   // columns of x
  int64_t outputs = 1;  // columns of y
  bool bias = true;     // of float alone
  bool relu = false;    // y = max(0, x W + b)
  bool forward = true;  // here and below, false: never asked for
  bool kernel_gradient = true;
  bool input_gradient = true;
  uint32_t alignment = 16;  // of all that is passed, bytes
};

// All calls enqueue on a CudaStream, and nothing once the device has failed. T: float or BFloat16.
template <typename T>
class InnerProductOf {
 public:
  // `context` outlives it.
  static absl::StatusOr<InnerProductOf> Create(CudaContext* context,
                                               const InnerProductOptions& options);

  // `bias`: null without one.
  absl::Status Forward(const T* x, const T* kernel, const float* bias, T* y, Stream* stream) const;
  // `gradient`: of x W.
  absl::Status KernelGradient(const T* x, const T* gradient, float* to, Stream* stream) const;
  absl::Status InputGradient(const T* kernel, const T* gradient, T* to, Stream* stream) const;

 private:
  explicit InnerProductOf(const CudaContext* context) : context_(context) {}

  absl::Status Enqueue(const Matmul& product, MatmulOperands operands, Stream* stream) const;

  const CudaContext* context_;
  // nullopt: never asked for.
  std::optional<Matmul> forward_;
  std::optional<Matmul> kernel_gradient_;
  std::optional<Matmul> input_gradient_;
};

extern template class InnerProductOf<float>;
extern template class InnerProductOf<BFloat16>;
using InnerProduct = InnerProductOf<float>;

}  // namespace lockstep::worker::cuda
