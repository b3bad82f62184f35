#include "worker/ops/noise.h"

#include "common/base/philox.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/noise_element.h"

namespace lockstep::worker::cpu {
namespace {

class NoiseOp : public CpuOp {
 public:
  explicit NoiseOp(const NoiseOptions& options)
      : name_(options.name), elements_(options.batch * options.elements) {}

  void RunForward(const ForwardArgs& args) override {
    const Philox generator(*args.random_key, name_);
    float* const to = args.output.as<float>().data();
    ParallelFor((elements_ + kNoisePerBlock - 1) / kNoisePerBlock,
                kElementGrain / kNoisePerBlock / 16, [&](int, int64_t begin, int64_t end) {
                  for (int64_t block = begin; block < end; ++block) {
                    Draw(generator.At(block), block * kNoisePerBlock, to);
                  }
                });
  }

  void RunBackward(const BackwardArgs&) override {}

 private:
  void Draw(const Philox::Block& numbers, int64_t first, float* to) const {
    for (int64_t i = 0; i < kNoisePerBlock && first + i < elements_; i += 2) {
      const NormalPair pair = NormalOf(numbers[i], numbers[i + 1]);
      to[first + i] = pair.at[0];
      if (first + i + 1 < elements_) to[first + i + 1] = pair.at[1];
    }
  }

  const std::string name_;
  const int64_t elements_;
};

std::unique_ptr<Op> MakeNoise(OneDnn*, const NoiseOptions& options) {
  return std::make_unique<NoiseOp>(options);
}

const Registration<&MakeNoise> kNoise;

}  // namespace
}  // namespace lockstep::worker::cpu
