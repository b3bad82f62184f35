#include "worker/ops/columns.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/columns.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

struct ColumnsKernels {
  Kernel<decltype(lockstep_copy_columns)> forward;
  Kernel<decltype(lockstep_columns_gradient)> backward;
};

class ColumnsOp : public Op {
 public:
  ColumnsOp(const ColumnsOptions& options, const ColumnsKernels& kernels)
      : options_(options), rows_(options.batch * options.positions), kernels_(kernels) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    kernels_.forward.Launch(stream, rows_ * options_.count, args.output.as<float>().data(),
                            options_.count, 0, args.inputs[0].as<float>().data(), options_.channels,
                            options_.first, options_.count, rows_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.input_gradient) return absl::OkStatus();
    kernels_.backward.Launch(stream, rows_ * options_.channels,
                             args.input_gradients[0].as<float>().data(),
                             args.output_gradient.as<float>().data(), options_.channels,
                             options_.first, options_.count, rows_);
    return absl::OkStatus();
  }

 private:
  const ColumnsOptions options_;
  const int64_t rows_;
  const ColumnsKernels kernels_;
};

OpTable::MadeOr<Op> MakeColumns(CudaContext* context, const ColumnsOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_copy_columns));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_columns_gradient));
  return std::make_unique<ColumnsOp>(options, ColumnsKernels{forward, backward});
}

const Registration<&MakeColumns> kColumns;

}  // namespace
}  // namespace lockstep::worker::cuda
