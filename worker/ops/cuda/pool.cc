#include "worker/ops/pool.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/pool.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

template <typename T>
struct PoolKernels {
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_max_pool)> max;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_max_pool_gradient)> max_gradient;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_average_pool)> average;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_average_pool_gradient)> average_gradient;
};

template <typename T>
class PoolOp : public Op {
 public:
  // `places`: an int32 per output; null where nobody needs the gradient of a maximum.
  PoolOp(const PoolOptions& options, const PoolKernels<T>& kernels, DeviceBuffer places)
      : options_(options),
        pool_(Describe(options)),
        num_inputs_(options.batch * options.input.num_elements()),
        num_outputs_(options.batch * options.output.num_elements()),
        kernels_(kernels),
        places_(std::move(places)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const T* const x = args.inputs[0].as<T>().data();
    T* const y = args.output.as<T>().data();
    if (options_.kind == PoolKind::kMax) {
      kernels_.max.Launch(stream, num_outputs_, y, places(), x, pool_);
    } else {
      kernels_.average.Launch(stream, num_outputs_, y, x, pool_);
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.input_gradient) return absl::OkStatus();
    const T* const gradient = args.output_gradient.as<T>().data();
    T* const to = args.input_gradients[0].as<T>().data();
    if (options_.kind == PoolKind::kMax) {
      kernels_.max_gradient.Launch(stream, num_inputs_, to, places(), gradient, pool_);
    } else {
      kernels_.average_gradient.Launch(stream, num_inputs_, to, gradient, pool_);
    }
    return absl::OkStatus();
  }

 private:
  static LockstepPool Describe(const PoolOptions& options) {
    const auto narrow = [](const std::array<int64_t, 2>& pair, int32_t* to) {
      for (size_t i : {0, 1}) to[i] = static_cast<int32_t>(pair[i]);
    };
    LockstepPool pool = {.batch = static_cast<int32_t>(options.batch),
                         .channels = static_cast<int32_t>(options.input.channels)};
    narrow({options.input.height, options.input.width}, pool.input);
    narrow({options.output.height, options.output.width}, pool.output);
    narrow(options.window.extent, pool.extent);
    narrow(options.window.stride, pool.stride);
    narrow(options.window.pad_before, pool.pad);
    return pool;
  }

  int32_t* places() const { return reinterpret_cast<int32_t*>(places_.get()); }

  const PoolOptions options_;
  const LockstepPool pool_;
  const int64_t num_inputs_;
  const int64_t num_outputs_;
  const PoolKernels<T> kernels_;
  const DeviceBuffer places_;
};

// Kernels compute with 32 bits: also places in a window, and rows and columns beside the image.
absl::Status CheckSizes(const PoolOptions& options) {
  constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostSteps = (int64_t{1} << 30) - 1;
  const int64_t elements =
      options.batch * std::max(options.input.num_elements(), options.output.num_elements());
  if (elements > kMostElements) {
    return absl::UnimplementedError(
        absl::StrCat("op \"pool\" on a GPU takes fewer than 2^31 elements, got ", elements,
                     "; use a smaller batch or more towers"));
  }
  const auto& [height, width] = options.window.extent;
  const auto& [down, right] = options.window.stride;
  if (std::max({height, width, down, right}) <= kMostSteps && height * width <= kMostElements) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "op \"pool\" on a GPU takes windows of fewer than 2^31 elements, and windows and strides "
      "below 2^30, got a window of ",
      height, "x", width, " and strides of ", down, "x", right,
      "; use a window no larger than the image"));
}

template <typename T>
OpTable::MadeOr<Op> MakePool(CudaContext* context, const PoolOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSizes(options));
  LOCKSTEP_RETURN_IF_ERROR(CheckPoolAxes(options));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto max, LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_max_pool));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto max_gradient,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_max_pool_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto average,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_average_pool));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto average_gradient,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_average_pool_gradient));
  DeviceBuffer places;
  if (options.kind == PoolKind::kMax && options.training && options.input_gradient) {
    const size_t bytes =
        sizeof(int32_t) * static_cast<size_t>(options.batch * options.output.num_elements());
    LOCKSTEP_ASSIGN_OR_RETURN(places, context->device()->Allocate(bytes));
  }
  return std::make_unique<PoolOp<T>>(
      options, PoolKernels<T>{max, max_gradient, average, average_gradient}, std::move(places));
}

const Registration<&MakePool<float>, &MakePool<BFloat16>> kPool;

}  // namespace
}  // namespace lockstep::worker::cuda
