#include "worker/ops/add.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/add.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

template <typename T>
class AddOp : public Op {
 public:
  AddOp(const AddOptions& options, const Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_add)>& add)
      : elements_(options.batch * options.elements), add_(add) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    T* const sum = args.output.as<T>().data();
    const T* first = args.inputs[0].as<T>().data();
    for (const TensorView& input : args.inputs.subspan(1)) {
      add_.Launch(stream, elements_, sum, first, input.as<T>().data(), elements_);
      first = sum;
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    for (const MutableTensorView& gradient : args.input_gradients) {
      if (gradient.data == nullptr) continue;
      static_cast<CudaStream*>(stream)->CopyOnDevice(gradient.data, args.output_gradient.data,
                                                     args.output_gradient.num_bytes());
    }
    return absl::OkStatus();
  }

 private:
  const int64_t elements_;
  const Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_add)> add_;
};

template <typename T>
OpTable::MadeOr<Op> MakeAdd(CudaContext* context, const AddOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto add, LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_add));
  return std::make_unique<AddOp<T>>(options, add);
}

const Registration<&MakeAdd<float>, &MakeAdd<BFloat16>> kAdd;

}  // namespace
}  // namespace lockstep::worker::cuda
