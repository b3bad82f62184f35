// By cuBLASLt. To it a row-major matrix is its transpose, so y = x W is computed as y' = W' x'.
#include "worker/ops/dense.h"

#include <optional>

#include "common/base/status_macros.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

struct DenseKernels {
  Kernel<decltype(lockstep_relu_gradient)> relu_gradient;
  ColumnSums bias_gradient;
};

// nullopt: not wanted.
struct DenseProducts {
  std::optional<Matmul> forward;
  std::optional<Matmul> kernel_gradient;
  std::optional<Matmul> input_gradient;
};

class DenseOp : public Op {
  enum Variable { kKernel, kBias };

 public:
  DenseOp(const CudaContext* context, const DenseOptions& options, const DenseKernels& kernels,
          DenseProducts products)
      : context_(context), options_(options), kernels_(kernels), products_(std::move(products)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    return Enqueue(*products_.forward,
                   {.a = args.variables[kKernel].as<float>().data(),
                    .b = args.inputs[0].as<float>().data(),
                    .bias = options_.bias ? args.variables[kBias].as<float>().data() : nullptr,
                    .d = args.output.as<float>().data()},
                   stream);
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    float* const gradient = args.output_gradient.as<float>().data();
    const int64_t outputs = options_.batch * options_.units;
    if (options_.relu) {
      kernels_.relu_gradient.Launch(stream, outputs, gradient, args.output.as<float>().data(),
                                    gradient, outputs);
    }
    if (options_.bias && options_.variable_gradients) {
      kernels_.bias_gradient.Launch(stream, args.variable_gradients[kBias].as<float>().data(),
                                    gradient);
    }
    if (products_.kernel_gradient.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(Enqueue(*products_.kernel_gradient,
                                       {.a = gradient,
                                        .b = args.inputs[0].as<float>().data(),
                                        .d = args.variable_gradients[kKernel].as<float>().data()},
                                       stream));
    }
    if (!products_.input_gradient.has_value()) return absl::OkStatus();
    return Enqueue(*products_.input_gradient,
                   {.a = args.variables[kKernel].as<float>().data(),
                    .b = gradient,
                    .d = args.input_gradients[0].as<float>().data()},
                   stream);
  }

 private:
  absl::Status Enqueue(const Matmul& product, MatmulOperands operands, Stream* stream) const {
    auto* const own = static_cast<CudaStream*>(stream);
    if (own->has_failed()) return absl::OkStatus();
    operands.workspace = context_->workspace();
    return product.Enqueue(operands, own->get());
  }

  const CudaContext* const context_;
  const DenseOptions options_;
  const DenseKernels kernels_;
  const DenseProducts products_;
};

OpTable::MadeOr<Op> MakeDense(CudaContext* context, const DenseOptions& options) {
  const auto batch = static_cast<uint64_t>(options.batch);
  const auto inputs = static_cast<uint64_t>(options.inputs);
  const auto units = static_cast<uint64_t>(options.units);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto relu_gradient,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_relu_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(ColumnSums bias_gradient,
                            ColumnSums::Create(context, options.batch, options.units));
  DenseProducts products;
  LOCKSTEP_ASSIGN_OR_RETURN(
      products.forward,
      context->MakeMatmul(
          {.m = units, .n = batch, .k = inputs, .bias = options.bias, .relu = options.relu}));
  if (options.training && options.variable_gradients) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        products.kernel_gradient,
        context->MakeMatmul({.m = units, .n = inputs, .k = batch, .transpose_b = true}));
  }
  if (options.training && options.input_gradient) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        products.input_gradient,
        context->MakeMatmul({.m = inputs, .n = batch, .k = units, .transpose_a = true}));
  }
  return std::make_unique<DenseOp>(context, options, DenseKernels{relu_gradient, bias_gradient},
                                   std::move(products));
}

const Registration<&MakeDense> kDense;

}  // namespace
}  // namespace lockstep::worker::cuda
