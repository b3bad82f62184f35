#include "worker/ops/noise.h"

#include <cmath>
#include <numbers>

#include "common/base/philox.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

constexpr int64_t kPerCall = 4;  // numbers that one call of the generator gives

class NoiseOp : public CpuOp {
 public:
  explicit NoiseOp(const NoiseOptions& options)
      : name_(options.name), elements_(options.batch * options.elements) {}

  void RunForward(const ForwardArgs& args) override {
    const Philox generator(args.random_key, name_);
    float* const to = args.output.as<float>().data();
    ParallelFor((elements_ + kPerCall - 1) / kPerCall, kElementGrain / kPerCall / 16,
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t block = begin; block < end; ++block) {
                    Draw(generator.At(block), block * kPerCall, to);
                  }
                });
  }

  void RunBackward(const BackwardArgs&) override {}

 private:
  // Box and Muller: two uniform numbers become two normal ones.
  void Draw(const Philox::Block& numbers, int64_t first, float* to) const {
    for (int64_t i = 0; i < kPerCall && first + i < elements_; ++i) {
      const double u = (numbers[i / 2 * 2] + 1.0) * 0x1.0p-32;  // in (0, 1]
      const double angle = 2 * std::numbers::pi * numbers[i / 2 * 2 + 1] * 0x1.0p-32;
      const double radius = std::sqrt(-2 * std::log(u));
      to[first + i] = static_cast<float>(radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
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
