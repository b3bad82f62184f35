#include "worker/ops/concatenate.h"

#include <numeric>

#include "common/base/status_macros.h"
#include "worker/ops/cuda/columns.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

template <typename T>
class ConcatenateOp : public Op {
 public:
  ConcatenateOp(const ConcatenateOptions& options,
                const Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_copy_columns)>& copy)
      : channels_(options.channels),
        rows_(options.batch * options.positions),
        width_(std::accumulate(channels_.begin(), channels_.end(), int64_t{0})),
        copy_(copy) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    T* const joined = args.output.as<T>().data();
    int64_t first = 0;
    for (size_t input = 0; input < channels_.size(); ++input) {
      const int64_t channels = channels_[input];
      copy_.Launch(stream, rows_ * channels, joined, width_, first,
                   args.inputs[input].as<T>().data(), channels, 0, channels, rows_);
      first += channels;
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    const T* const joined = args.output_gradient.as<T>().data();
    int64_t first = 0;
    for (size_t input = 0; input < channels_.size(); ++input) {
      const int64_t channels = channels_[input];
      if (T* const to = static_cast<T*>(args.input_gradients[input].data); to != nullptr) {
        copy_.Launch(stream, rows_ * channels, to, channels, 0, joined, width_, first, channels,
                     rows_);
      }
      first += channels;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<int64_t> channels_;
  const int64_t rows_;
  const int64_t width_;
  const Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_copy_columns)> copy_;
};

template <typename T>
OpTable::MadeOr<Op> MakeConcatenate(CudaContext* context, const ConcatenateOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto copy,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_copy_columns));
  return std::make_unique<ConcatenateOp<T>>(options, copy);
}

const Registration<&MakeConcatenate<float>, &MakeConcatenate<BFloat16>> kConcatenate;

}  // namespace
}  // namespace lockstep::worker::cuda
