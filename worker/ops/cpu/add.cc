#include "worker/ops/add.h"

#include <cstring>

#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

class AddOp : public CpuOp {
 public:
  explicit AddOp(const AddOptions& options) : elements_(options.batch * options.elements) {}

  void RunForward(const ForwardArgs& args) override {
    float* const sum = args.output.as<float>().data();
    const float* first = args.inputs[0].as<float>().data();
    for (size_t input = 1; input < args.inputs.size(); ++input) {
      const float* const other = args.inputs[input].as<float>().data();
      ParallelFor(elements_, kElementGrain, [&](int, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) sum[i] = first[i] + other[i];
      });
      first = sum;
    }
  }

  void RunBackward(const BackwardArgs& args) override {
    for (const MutableTensorView& gradient : args.input_gradients) {
      if (gradient.data == nullptr) continue;
      std::memcpy(gradient.data, args.output_gradient.data, elements_ * sizeof(float));
    }
  }

 private:
  const int64_t elements_;
};

std::unique_ptr<Op> MakeAdd(OneDnn*, const AddOptions& options) {
  return std::make_unique<AddOp>(options);
}

const Registration<&MakeAdd> kAdd;

}  // namespace
}  // namespace lockstep::worker::cpu
