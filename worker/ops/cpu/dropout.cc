#include "worker/ops/dropout.h"

#include <cstring>
#include <vector>

#include "common/base/philox.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/dropout_element.h"

namespace lockstep::worker::cpu {
namespace {

constexpr int64_t kPerBlock = kDropoutPerBlock;

class DropoutOp : public CpuOp {
 public:
  explicit DropoutOp(const DropoutOptions& options)
      : options_(options),
        elements_(options.batch * options.elements),
        scale_(1 / (1 - options.rate)),
        kept_(options.training ? (elements_ + kPerBlock - 1) / kPerBlock * kPerBlock : 0) {}

  void RunForward(const ForwardArgs& args) override {
    const float* const x = args.inputs[0].as<float>().data();
    float* const y = args.output.as<float>().data();
    if (args.mode == Mode::kInference) {
      std::memcpy(y, x, elements_ * sizeof(float));
      return;
    }
    const Philox generator(*args.random_key, options_.name);
    ParallelFor(kept_.size() / kPerBlock, kElementGrain / kPerBlock / 4,
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t block = begin; block < end; ++block) {
                    const Philox::Block numbers = generator.At(block);
                    for (int i = 0; i < kPerBlock; ++i) {
                      kept_[block * kPerBlock + i] = KeepsElement(numbers[i], options_.rate);
                    }
                  }
                });
    Apply(x, y);
  }

  void RunBackward(const BackwardArgs& args) override {
    if (!options_.input_gradient) return;
    Apply(args.output_gradient.as<float>().data(), args.input_gradients[0].as<float>().data());
  }

 private:
  void Apply(const float* from, float* to) const {
    ParallelFor(elements_, kElementGrain, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = DropElement(from[i], kept_[i], scale_);
    });
  }

  const DropoutOptions options_;
  const int64_t elements_;
  const float scale_;
  std::vector<uint8_t> kept_;
};

std::unique_ptr<Op> MakeDropout(OneDnn*, const DropoutOptions& options) {
  return std::make_unique<DropoutOp>(options);
}

const Registration<&MakeDropout> kDropout;

}  // namespace
}  // namespace lockstep::worker::cpu
