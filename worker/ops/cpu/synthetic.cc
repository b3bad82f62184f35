#include "worker/ops/synthetic.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/philox.h"
#include "common/tensor/non_temporal_copy.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

// What is larger has left the caches before anybody reads it.
constexpr size_t kCached = size_t{1} << 20;  // bytes

void Fill(std::span<float> elements, float value) {
  if (elements.size_bytes() <= kCached) {
    std::ranges::fill(elements, value);
    return;
  }
  std::array<float, 1024> block;
  block.fill(value);
  for (size_t done = 0; done < elements.size(); done += block.size()) {
    const size_t count = std::min(block.size(), elements.size() - done);
    NonTemporalCopy(&elements[done], block.data(), count * sizeof(float));
  }
  FlushStreams();
}

class SyntheticOp : public CpuOp {
 public:
  explicit SyntheticOp(const SyntheticOptions& options)
      : options_(options), input_bytes_(options.batch * options.elements * sizeof(float)) {}

  void RunForward(const ForwardArgs& args) override {
    std::memcpy(args.output.data, args.inputs[0].data, input_bytes_);
    random_key_ = *args.random_key;
  }

  void RunBackward(const BackwardArgs& args) override {
    if (options_.input_gradient) {
      std::memcpy(args.input_gradients[0].data, args.output_gradient.data, input_bytes_);
    }
    if (!options_.variable_gradients) return;
    const Philox generator(random_key_, options_.name);
    for (size_t variable = 0; variable < args.variable_gradients.size(); ++variable) {
      const float value = 2 * UniformFloat(generator.At(variable)[0]) - 1;
      const std::span<float> gradient = args.variable_gradients[variable].as<float>();
      ParallelFor(static_cast<int64_t>(gradient.size()), kElementGrain,
                  [&](int, int64_t begin, int64_t end) {
                    Fill(gradient.subspan(begin, end - begin), value);
                  });
    }
    WaitForRelease();
  }

 private:
  void WaitForRelease() const {
    const absl::Duration every = options_.release_every;
    if (every <= absl::ZeroDuration()) return;
    const absl::Duration now = Clock::Real()->Monotonic();
    absl::SleepFor(absl::Floor(now, every) + every - now);
  }

  const SyntheticOptions options_;
  const size_t input_bytes_;
  uint64_t random_key_ = 0;  // of the last Forward
};

std::unique_ptr<Op> MakeSynthetic(OneDnn*, const SyntheticOptions& options) {
  return std::make_unique<SyntheticOp>(options);
}

const Registration<&MakeSynthetic> kSynthetic;

}  // namespace
}  // namespace lockstep::worker::cpu
