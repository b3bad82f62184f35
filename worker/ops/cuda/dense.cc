#include "worker/ops/dense.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/bias.cuh"
#include "worker/ops/cuda/cast.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/inner_product.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

enum DenseVariable { kDenseKernel, kDenseBias };

template <typename T>
struct DenseKernels {
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_relu_gradient)> relu_gradient;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_bias)> bias;
  Kernel<decltype(lockstep_to_bf16)> to_bfloat16;
};

// In bfloat16 the kernel is rounded first; bias and relu follow the product, as cuBLASLt takes no
// float32 bias there.
template <typename T>
class DenseOp : public Op {
 public:
  static constexpr bool kIsFloat = std::is_same_v<T, float>;

  // `kernel`: as large as the variable, in bfloat16; null in float32.
  DenseOp(const DenseOptions& options, InnerProductOf<T> product, ColumnSumsOf<T> bias_gradient,
          const DenseKernels<T>& kernels, DeviceBuffer kernel)
      : options_(options),
        product_(std::move(product)),
        bias_gradient_(std::move(bias_gradient)),
        kernels_(kernels),
        kernel_(std::move(kernel)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const float* const kernel = args.variables[kDenseKernel].as<float>().data();
    const float* const bias =
        options_.bias ? args.variables[kDenseBias].as<float>().data() : nullptr;
    const T* const x = args.inputs[0].as<T>().data();
    T* const y = args.output.as<T>().data();
    if constexpr (kIsFloat) {
      return product_.Forward(x, kernel, bias, y, stream);
    } else {
      const int64_t elements = options_.inputs * options_.units;
      kernels_.to_bfloat16.Launch(stream, elements, rounded_kernel(), kernel, elements);
      LOCKSTEP_RETURN_IF_ERROR(product_.Forward(x, rounded_kernel(), nullptr, y, stream));
      if (options_.bias || options_.relu) {
        kernels_.bias.Launch(stream, outputs(), y, bias, options_.relu, options_.batch,
                             options_.units);
      }
      return absl::OkStatus();
    }
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    T* const gradient = args.output_gradient.as<T>().data();
    if (options_.relu) {
      kernels_.relu_gradient.Launch(stream, outputs(), gradient, args.output.as<T>().data(),
                                    gradient, outputs());
    }
    if (options_.variable_gradients) {
      if (options_.bias) {
        bias_gradient_.Launch(stream, args.variable_gradients[kDenseBias].as<float>().data(),
                              gradient);
      }
      LOCKSTEP_RETURN_IF_ERROR(product_.KernelGradient(
          args.inputs[0].as<T>().data(), gradient,
          args.variable_gradients[kDenseKernel].as<float>().data(), stream));
    }
    if (!options_.input_gradient) return absl::OkStatus();
    return product_.InputGradient(KernelOf(args), gradient, args.input_gradients[0].as<T>().data(),
                                  stream);
  }

 private:
  int64_t outputs() const { return options_.batch * options_.units; }
  BFloat16* rounded_kernel() const { return reinterpret_cast<BFloat16*>(kernel_.get()); }
  const T* KernelOf(const BackwardArgs& args) const {
    if constexpr (kIsFloat) {
      return args.variables[kDenseKernel].as<float>().data();
    } else {
      return rounded_kernel();
    }
  }

  const DenseOptions options_;
  const InnerProductOf<T> product_;
  const ColumnSumsOf<T> bias_gradient_;
  const DenseKernels<T> kernels_;
  const DeviceBuffer kernel_;
};

template <typename T>
OpTable::MadeOr<Op> MakeDense(CudaContext* context, const DenseOptions& options) {
  constexpr bool kIsFloat = DenseOp<T>::kIsFloat;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto relu_gradient,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_relu_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bias, LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_bias));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto to_bfloat16,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_to_bf16));
  LOCKSTEP_ASSIGN_OR_RETURN(auto bias_gradient,
                            ColumnSumsOf<T>::Create(context, options.batch, options.units));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto product, InnerProductOf<T>::Create(
                        context, {.rows = options.batch,
                                  .inputs = options.inputs,
                                  .outputs = options.units,
                                  .bias = kIsFloat && options.bias,
                                  .relu = kIsFloat && options.relu,
                                  .kernel_gradient = options.training && options.variable_gradients,
                                  .input_gradient = options.training && options.input_gradient}));
  DeviceBuffer kernel;
  if (!kIsFloat) {
    const auto elements = static_cast<size_t>(options.inputs * options.units);
    LOCKSTEP_ASSIGN_OR_RETURN(kernel, context->device()->Allocate(elements * sizeof(T)));
  }
  return std::make_unique<DenseOp<T>>(options, std::move(product), std::move(bias_gradient),
                                      DenseKernels<T>{relu_gradient, bias, to_bfloat16},
                                      std::move(kernel));
}

const Registration<&MakeDense<float>, &MakeDense<BFloat16>> kDense;

}  // namespace
}  // namespace lockstep::worker::cuda
