#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/contest.h"
#include "tests/bench/gpu/gpu.h"
#include "tests/bench/gpu/rows.h"
#include "worker/device/cuda/cuda_stream.h"
#include "worker/ops/activation.h"
#include "worker/ops/add.h"
#include "worker/ops/batch_norm.h"
#include "worker/ops/dropout.h"
#include "worker/ops/pool.h"

namespace lockstep::bench::gpu {
namespace {

constexpr int64_t kBytes = int64_t{256} << 20;
constexpr int64_t kPerExample = 64 * 64 * 64;
constexpr int64_t kChannels = 64;
constexpr int kCalls = 50;
constexpr double kKernelTarget = 0.85;

// Images of kBytes together.
worker::OpOptions Images(DType type = DType::kFloat32) {
  const auto size = static_cast<int64_t>(SizeOf(type));
  return {.batch = kBytes / size / kPerExample, .type = type};
}

// An op on images, whose tensors are here.
class OpSide {
 public:
  template <typename Options>
  static absl::StatusOr<std::unique_ptr<OpSide>> Make(const Options& options, int inputs,
                                                      int64_t outputs, int variables) {
    const int64_t elements = options.batch * kPerExample;
    const DType type = options.type;
    LOCKSTEP_ASSIGN_OR_RETURN(Gpu gpu, Gpu::Open());
    std::unique_ptr<OpSide> side(new OpSide(std::move(gpu)));
    LOCKSTEP_ASSIGN_OR_RETURN(side->op_, side->gpu_.ops().Make(side->gpu_.context(), options));
    for (int i = 0; i < inputs; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(side->Add(elements, type, &side->inputs_));
      LOCKSTEP_RETURN_IF_ERROR(side->Add(elements, type, &side->input_gradients_));
    }
    for (int i = 0; i < variables; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(side->Add(kChannels, DType::kFloat32, &side->variables_));
      LOCKSTEP_RETURN_IF_ERROR(side->Add(kChannels, DType::kFloat32, &side->variable_gradients_));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(side->random_key_, side->gpu_.RandomNumbers(2));
    LOCKSTEP_RETURN_IF_ERROR(side->Add(outputs, type, &side->outputs_));  // and its gradient
    LOCKSTEP_RETURN_IF_ERROR(side->Add(outputs, type, &side->outputs_));
    return side;
  }

  absl::StatusOr<double> Forward() {
    return gpu_.SecondsOf(kCalls, [this] { return RunForward(); });
  }
  absl::StatusOr<double> Backward() {
    LOCKSTEP_RETURN_IF_ERROR(RunForward());
    return gpu_.SecondsOf(kCalls, [this] {
      return op_->Backward({.inputs = input_views(),
                            .variables = variable_views(),
                            .output = outputs_[0],
                            .output_gradient = outputs_[1],
                            .input_gradients = input_gradients_,
                            .variable_gradients = variable_gradients_},
                           gpu_.stream());
    });
  }

 private:
  explicit OpSide(Gpu gpu) : gpu_(std::move(gpu)) {}

  absl::Status RunForward() {
    return op_->Forward({.random_key = reinterpret_cast<const uint64_t*>(random_key_.get()),
                         .inputs = input_views(),
                         .variables = variable_views(),
                         .output = outputs_[0]},
                        gpu_.stream());
  }
  absl::Status Add(int64_t elements, DType type, std::vector<MutableTensorView>* views) {
    LOCKSTEP_ASSIGN_OR_RETURN(memory_.emplace_back(), gpu_.RandomNumbers(elements, type));
    views->push_back({type, Shape({elements}), memory_.back().get()});
    return absl::OkStatus();
  }
  static std::span<const TensorView> AsConst(const std::vector<MutableTensorView>& views,
                                             std::vector<TensorView>* constant) {
    constant->assign(views.begin(), views.end());
    return *constant;
  }
  std::span<const TensorView> input_views() { return AsConst(inputs_, &constant_inputs_); }
  std::span<const TensorView> variable_views() { return AsConst(variables_, &constant_variables_); }

  const Gpu gpu_;
  std::vector<worker::DeviceBuffer> memory_;
  worker::DeviceBuffer random_key_;  // any 8 bytes
  std::unique_ptr<worker::Op> op_;
  std::vector<MutableTensorView> inputs_;
  std::vector<MutableTensorView> input_gradients_;
  std::vector<MutableTensorView> variables_;
  std::vector<MutableTensorView> variable_gradients_;
  std::vector<MutableTensorView> outputs_;
  std::vector<TensorView> constant_inputs_;
  std::vector<TensorView> constant_variables_;
};

using MakeOp = std::function<absl::StatusOr<std::unique_ptr<OpSide>>()>;

struct KernelCase {
  std::string name;
  // What is read and written, what is kept for the gradient too, in tensors of kBytes.
  double tensors = 2;
  bool backward = false;
  MakeOp make;
};

MakeOp Pool(worker::PoolKind kind) {
  return [kind] {
    worker::PoolOptions options{Images(), kind, {64, 64, 64}, {32, 32, 64}};
    options.window = {.extent = {2, 2}, .stride = {2, 2}};
    return OpSide::Make(options, 1, options.batch * kPerExample / 4, 0);
  };
}

MakeOp Activation(worker::ActivationKind kind) {
  return [kind] {
    const worker::ActivationOptions options{Images(), kind, kPerExample};
    return OpSide::Make(options, 1, options.batch * kPerExample, 0);
  };
}

MakeOp Add(DType type) {
  return [type] {
    const worker::AddOptions options{Images(type), kPerExample};
    return OpSide::Make(options, 2, options.batch * kPerExample, 0);
  };
}

// With the relu that mostly follows.
MakeOp BatchNorm(DType type) {
  return [type] {
    worker::BatchNormOptions options{Images(type), kPerExample / kChannels, kChannels};
    options.relu = true;
    return OpSide::Make(options, 1, options.batch * kPerExample, 4);
  };
}

MakeOp Dropout() {
  return [] {
    const worker::DropoutOptions options{Images(), "drop", 0.25f, kPerExample};
    return OpSide::Make(options, 1, options.batch * kPerExample, 0);
  };
}

std::vector<KernelCase> Cases() {
  using worker::ActivationKind;
  constexpr DType kHalf = DType::kBFloat16;
  constexpr DType kWhole = DType::kFloat32;
  return {{"gpu_relu", 2, false, Activation(ActivationKind::kRelu)},
          {"gpu_relu_gradient", 3, true, Activation(ActivationKind::kRelu)},
          {"gpu_tanh", 2, false, Activation(ActivationKind::kTanh)},
          {"gpu_sigmoid_gradient", 3, true, Activation(ActivationKind::kSigmoid)},
          {"gpu_add", 3, false, Add(kWhole)},
          {"gpu_add_bf16", 3, false, Add(kHalf)},
          {"gpu_dropout", 2.25, false, Dropout()},
          {"gpu_dropout_gradient", 2.25, true, Dropout()},
          {"gpu_max_pool", 1.5, false, Pool(worker::PoolKind::kMax)},
          {"gpu_max_pool_gradient", 1.5, true, Pool(worker::PoolKind::kMax)},
          {"gpu_average_pool", 1.25, false, Pool(worker::PoolKind::kAverage)},
          {"gpu_average_pool_gradient", 1.25, true, Pool(worker::PoolKind::kAverage)},
          {"gpu_batch_norm", 3, false, BatchNorm(kWhole)},
          {"gpu_batch_norm_gradient", 5, true, BatchNorm(kWhole)},
          {"gpu_batch_norm_bf16", 3, false, BatchNorm(kHalf)},
          {"gpu_batch_norm_gradient_bf16", 5, true, BatchNorm(kHalf)}};
}

// In GB/s.
Measure RateOfKernel(const KernelCase& kernel) {
  return [kernel]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<OpSide> side, kernel.make());
    LOCKSTEP_ASSIGN_OR_RETURN(const double seconds,
                              kernel.backward ? side->Backward() : side->Forward());
    return kernel.tensors * static_cast<double>(kBytes) / seconds / 1e9;
  };
}

absl::StatusOr<double> RateOfDeviceCopy() {
  LOCKSTEP_ASSIGN_OR_RETURN(const Gpu gpu, Gpu::Open());
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::DeviceBuffer from,
                            gpu.RandomNumbers(kBytes / sizeof(float)));
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::DeviceBuffer to,
                            gpu.RandomNumbers(kBytes / sizeof(float)));
  LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, gpu.SecondsOf(kCalls, [&] {
    static_cast<worker::cuda::CudaStream*>(gpu.stream())
        ->CopyOnDevice(to.get(), from.get(), kBytes);
    return absl::OkStatus();
  }));
  return 2 * static_cast<double>(kBytes) / seconds / 1e9;
}

Contest KernelContest(const BenchOptions&) {
  Contest contest{.unit = "GB/s",
                  .higher_is_better = true,
                  .note = "256 MiB; the bytes that are read and written"};
  contest.sides.push_back({"copy", "a copy on the GPU", RateOfDeviceCopy});
  for (const KernelCase& kernel : Cases()) {
    contest.sides.push_back({kernel.name, kernel.name, RateOfKernel(kernel)});
    contest.comparisons.push_back({kernel.name, kernel.name, "copy", kKernelTarget});
  }
  return contest;
}

}  // namespace

RowGroup KernelRows() { return AsGroup(KernelContest); }

}  // namespace lockstep::bench::gpu
