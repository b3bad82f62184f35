#include "worker/ops/concatenate.h"

#include <cstring>
#include <numeric>

#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

class ConcatenateOp : public CpuOp {
 public:
  explicit ConcatenateOp(const ConcatenateOptions& options)
      : channels_(options.channels),
        rows_(options.batch * options.positions),
        width_(std::accumulate(channels_.begin(), channels_.end(), int64_t{0})) {}

  void RunForward(const ForwardArgs& args) override {
    float* const joined = args.output.as<float>().data();
    ForEachRow([&](size_t input, int64_t row, int64_t offset) {
      const float* const from = static_cast<const float*>(args.inputs[input].data);
      std::memcpy(joined + row * width_ + offset, from + row * channels_[input],
                  channels_[input] * sizeof(float));
    });
  }

  void RunBackward(const BackwardArgs& args) override {
    const float* const joined = args.output_gradient.as<float>().data();
    ForEachRow([&](size_t input, int64_t row, int64_t offset) {
      float* const to = static_cast<float*>(args.input_gradients[input].data);
      if (to == nullptr) return;
      std::memcpy(to + row * channels_[input], joined + row * width_ + offset,
                  channels_[input] * sizeof(float));
    });
  }

 private:
  // copy(input, row, offset of the input in a joined row)
  template <typename CopyPart>
  void ForEachRow(const CopyPart& copy) const {
    ParallelFor(rows_, std::max<int64_t>(kElementGrain / width_, 1),
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    int64_t offset = 0;
                    for (size_t input = 0; input < channels_.size(); ++input) {
                      copy(input, row, offset);
                      offset += channels_[input];
                    }
                  }
                });
  }

  const std::vector<int64_t> channels_;
  const int64_t rows_;
  const int64_t width_;
};

std::unique_ptr<Op> MakeConcatenate(OneDnn*, const ConcatenateOptions& options) {
  return std::make_unique<ConcatenateOp>(options);
}

const Registration<&MakeConcatenate> kConcatenate;

}  // namespace
}  // namespace lockstep::worker::cpu
