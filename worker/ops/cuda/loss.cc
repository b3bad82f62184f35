#include "worker/ops/loss.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/loss.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

struct LossKernels {
  Kernel<decltype(lockstep_softmax_cross_entropy)> softmax_cross_entropy;
  Kernel<decltype(lockstep_softmax)> softmax;
  Kernel<decltype(lockstep_l2)> l2;
  Kernel<decltype(lockstep_sigmoid_cross_entropy)> sigmoid_cross_entropy;
  Kernel<decltype(lockstep_sum_losses)> sum_losses;
  Kernel<decltype(lockstep_sigmoid_of_logits)> sigmoid_of_logits;
};

// Losses by row, then their sum: two launches.
class CudaLoss : public Loss {
 public:
  // `rows`: two doubles for each example of the batch.
  CudaLoss(const LossOptions& options, const LossKernels& kernels, DeviceBuffer rows)
      : options_(options), kernels_(kernels), rows_(std::move(rows)) {}

  absl::Status Train(const Args& args, Stream* stream) override {
    LaunchRows(args, static_cast<float*>(args.gradient.data), nullptr, stream);
    // Means over the outputs, too, where the loss is one.
    kernels_.sum_losses.LaunchBlocks(stream, 1, args.result.as<float>().data(), nullptr, losses(),
                                     nullptr, static_cast<double>(options_.batch) * outputs(),
                                     options_.batch);
    return absl::OkStatus();
  }

  absl::Status Evaluate(const Args& args, Stream* stream) override {
    double* const correct =
        options_.kind == LossKind::kSoftmaxCrossEntropy ? losses() + options_.batch : nullptr;
    LaunchRows(args, nullptr, correct, stream);
    kernels_.sum_losses.LaunchBlocks(stream, 1, nullptr, args.result.as<double>().data(), losses(),
                                     correct, outputs(), options_.batch);
    return absl::OkStatus();
  }

  absl::Status Predict(const Args& args, Stream* stream) override {
    const std::span<const float> y = args.outputs.as<float>();
    float* const to = args.result.as<float>().data();
    switch (options_.kind) {
      case LossKind::kSoftmaxCrossEntropy:
        kernels_.softmax.LaunchBlocks(stream, options_.batch, to, y.data(), options_.outputs,
                                      options_.batch);
        break;
      case LossKind::kSigmoidCrossEntropy:
        kernels_.sigmoid_of_logits.Launch(stream, options_.batch * options_.outputs, to, y.data(),
                                          options_.batch * options_.outputs);
        break;
      case LossKind::kL2:
        static_cast<CudaStream*>(stream)->CopyOnDevice(to, y.data(), y.size_bytes());
    }
    return absl::OkStatus();
  }

 private:
  double* losses() const { return reinterpret_cast<double*>(rows_.get()); }
  // By which the loss of an example is divided.
  double outputs() const {
    const bool is_mean = options_.kind == LossKind::kSigmoidCrossEntropy;
    return is_mean ? static_cast<double>(options_.outputs) : 1;
  }

  void LaunchRows(const Args& args, float* gradient, double* correct, Stream* stream) const {
    const float* const y = args.outputs.as<float>().data();
    const int64_t batch = options_.batch;
    switch (options_.kind) {
      case LossKind::kSoftmaxCrossEntropy:
        kernels_.softmax_cross_entropy.LaunchBlocks(stream, batch, gradient, losses(), correct, y,
                                                    args.labels.as<int32_t>().data(),
                                                    options_.outputs, batch);
        break;
      case LossKind::kL2:
        kernels_.l2.LaunchBlocks(stream, batch, gradient, losses(), y,
                                 args.labels.as<float>().data(), options_.outputs, batch);
        break;
      case LossKind::kSigmoidCrossEntropy:
        const bool has_labels = !options_.target.has_value();
        kernels_.sigmoid_cross_entropy.LaunchBlocks(
            stream, batch, gradient, losses(), y,
            has_labels ? args.labels.as<float>().data() : nullptr, options_.target.value_or(0),
            options_.outputs, batch);
    }
  }

  const LossOptions options_;
  const LossKernels kernels_;
  const DeviceBuffer rows_;
};

OpTable::MadeOr<Loss> MakeLoss(CudaContext* context, const LossOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto softmax_cross_entropy,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_softmax_cross_entropy));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto softmax, LOCKSTEP_FIND_KERNEL(context, lockstep_softmax));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto l2, LOCKSTEP_FIND_KERNEL(context, lockstep_l2));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sigmoid_cross_entropy,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_sigmoid_cross_entropy));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sum_losses,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_sum_losses));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sigmoid_of_logits,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_sigmoid_of_logits));
  const size_t bytes = 2 * sizeof(double) * static_cast<size_t>(options.batch);
  LOCKSTEP_ASSIGN_OR_RETURN(DeviceBuffer rows, context->device()->Allocate(bytes));
  const LossKernels kernels{softmax_cross_entropy, softmax,    l2,
                            sigmoid_cross_entropy, sum_losses, sigmoid_of_logits};
  return std::make_unique<CudaLoss>(options, kernels, std::move(rows));
}

const Registration<&MakeLoss> kLoss;

}  // namespace
}  // namespace lockstep::worker::cuda
