#include "worker/ops/dense.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/inner_product.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

class DenseOp : public Op {
  enum Variable { kKernel, kBias };

 public:
  DenseOp(const DenseOptions& options, InnerProduct product, ColumnSums bias_gradient,
          const Kernel<decltype(lockstep_relu_gradient)>& relu_gradient)
      : options_(options),
        product_(std::move(product)),
        bias_gradient_(std::move(bias_gradient)),
        relu_gradient_(relu_gradient) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    return product_.Forward(args.inputs[0].as<float>().data(),
                            args.variables[kKernel].as<float>().data(),
                            options_.bias ? args.variables[kBias].as<float>().data() : nullptr,
                            args.output.as<float>().data(), stream);
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    float* const gradient = args.output_gradient.as<float>().data();
    const int64_t outputs = options_.batch * options_.units;
    if (options_.relu) {
      relu_gradient_.Launch(stream, outputs, gradient, args.output.as<float>().data(), gradient,
                            outputs);
    }
    if (options_.variable_gradients) {
      if (options_.bias) {
        bias_gradient_.Launch(stream, args.variable_gradients[kBias].as<float>().data(), gradient);
      }
      LOCKSTEP_RETURN_IF_ERROR(
          product_.KernelGradient(args.inputs[0].as<float>().data(), gradient,
                                  args.variable_gradients[kKernel].as<float>().data(), stream));
    }
    if (!options_.input_gradient) return absl::OkStatus();
    return product_.InputGradient(args.variables[kKernel].as<float>().data(), gradient,
                                  args.input_gradients[0].as<float>().data(), stream);
  }

 private:
  const DenseOptions options_;
  const InnerProduct product_;
  const ColumnSums bias_gradient_;
  const Kernel<decltype(lockstep_relu_gradient)> relu_gradient_;
};

OpTable::MadeOr<Op> MakeDense(CudaContext* context, const DenseOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto relu_gradient,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_relu_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(ColumnSums bias_gradient,
                            ColumnSums::Create(context, options.batch, options.units));
  LOCKSTEP_ASSIGN_OR_RETURN(
      InnerProduct product,
      InnerProduct::Create(context,
                           {.rows = options.batch,
                            .inputs = options.inputs,
                            .outputs = options.units,
                            .bias = options.bias,
                            .relu = options.relu,
                            .kernel_gradient = options.training && options.variable_gradients,
                            .input_gradient = options.training && options.input_gradient}));
  return std::make_unique<DenseOp>(options, std::move(product), std::move(bias_gradient),
                                   relu_gradient);
}

const Registration<&MakeDense> kDense;

}  // namespace
}  // namespace lockstep::worker::cuda
