#include "worker/ops/concatenate.h"

#include <numeric>

#include "common/base/status_macros.h"
#include "worker/ops/cuda/columns.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

class ConcatenateOp : public Op {
 public:
  ConcatenateOp(const ConcatenateOptions& options,
                const Kernel<decltype(lockstep_copy_columns)>& copy)
      : channels_(options.channels),
        rows_(options.batch * options.positions),
        width_(std::accumulate(channels_.begin(), channels_.end(), int64_t{0})),
        copy_(copy) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    float* const joined = args.output.as<float>().data();
    int64_t first = 0;
    for (size_t input = 0; input < channels_.size(); ++input) {
      const int64_t channels = channels_[input];
      copy_.Launch(stream, rows_ * channels, joined, width_, first,
                   args.inputs[input].as<float>().data(), channels, 0, channels, rows_);
      first += channels;
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    const float* const joined = args.output_gradient.as<float>().data();
    int64_t first = 0;
    for (size_t input = 0; input < channels_.size(); ++input) {
      const int64_t channels = channels_[input];
      if (float* const to = static_cast<float*>(args.input_gradients[input].data); to != nullptr) {
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
  const Kernel<decltype(lockstep_copy_columns)> copy_;
};

OpTable::MadeOr<Op> MakeConcatenate(CudaContext* context, const ConcatenateOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto copy, LOCKSTEP_FIND_KERNEL(context, lockstep_copy_columns));
  return std::make_unique<ConcatenateOp>(options, copy);
}

const Registration<&MakeConcatenate> kConcatenate;

}  // namespace
}  // namespace lockstep::worker::cuda
