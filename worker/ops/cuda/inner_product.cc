// To cuBLASLt a row-major matrix is its transpose, so y = x W is computed as y' = W' x'.
#include "worker/ops/cuda/inner_product.h"

#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {

template <typename T>
absl::StatusOr<InnerProductOf<T>> InnerProductOf<T>::Create(CudaContext* context,
                                                            const InnerProductOptions& options) {
  const auto rows = static_cast<uint64_t>(options.rows);
  const auto inputs = static_cast<uint64_t>(options.inputs);
  const auto outputs = static_cast<uint64_t>(options.outputs);
  InnerProductOf product(context);
  const auto make = [&](MatmulShape shape, std::optional<Matmul>* made) -> absl::Status {
    shape.alignment = options.alignment;
    shape.factors = DTypeOf<T>();
    LOCKSTEP_ASSIGN_OR_RETURN(*made, context->MakeMatmul(shape));
    return absl::OkStatus();
  };
  if (options.forward) {
    LOCKSTEP_RETURN_IF_ERROR(make({.m = outputs,
                                   .n = rows,
                                   .k = inputs,
                                   .bias = options.bias,
                                   .relu = options.relu,
                                   .result = DTypeOf<T>()},
                                  &product.forward_));
  }
  if (options.kernel_gradient) {
    LOCKSTEP_RETURN_IF_ERROR(make({.m = outputs, .n = inputs, .k = rows, .transpose_b = true},
                                  &product.kernel_gradient_));
  }
  if (options.input_gradient) {
    LOCKSTEP_RETURN_IF_ERROR(
        make({.m = inputs, .n = rows, .k = outputs, .transpose_a = true, .result = DTypeOf<T>()},
             &product.input_gradient_));
  }
  return product;
}

template <typename T>
absl::Status InnerProductOf<T>::Forward(const T* x, const T* kernel, const float* bias, T* y,
                                        Stream* stream) const {
  return Enqueue(*forward_, {.a = kernel, .b = x, .bias = bias, .d = y}, stream);
}

template <typename T>
absl::Status InnerProductOf<T>::KernelGradient(const T* x, const T* gradient, float* to,
                                               Stream* stream) const {
  return Enqueue(*kernel_gradient_, {.a = gradient, .b = x, .d = to}, stream);
}

template <typename T>
absl::Status InnerProductOf<T>::InputGradient(const T* kernel, const T* gradient, T* to,
                                              Stream* stream) const {
  return Enqueue(*input_gradient_, {.a = kernel, .b = gradient, .d = to}, stream);
}

template <typename T>
absl::Status InnerProductOf<T>::Enqueue(const Matmul& product, MatmulOperands operands,
                                        Stream* stream) const {
  auto* const own = static_cast<CudaStream*>(stream);
  if (own->has_failed()) return absl::OkStatus();
  operands.workspace = context_->workspace();
  return product.Enqueue(operands, own->get());
}

template class InnerProductOf<float>;
template class InnerProductOf<BFloat16>;

}  // namespace lockstep::worker::cuda
