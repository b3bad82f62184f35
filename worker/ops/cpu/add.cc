#include <cstring>

#include "worker/ops/cpu/ops.h"
#include "worker/ops/cpu/parallel.h"

namespace lockstep::worker::cpu {
namespace {

class AddOp : public Op {
 public:
  explicit AddOp(const AddOptions& options) : elements_(options.batch * options.elements) {}

  void Forward(const ForwardArgs& args) override {
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

  void Backward(const BackwardArgs& args) override {
    for (const MutableTensorView& gradient : args.input_gradients) {
      if (gradient.data == nullptr) continue;
      std::memcpy(gradient.data, args.output_gradient.data, elements_ * sizeof(float));
    }
  }

 private:
  const int64_t elements_;
};

}  // namespace

std::unique_ptr<Op> MakeAdd(const AddOptions& options) { return std::make_unique<AddOp>(options); }

}  // namespace lockstep::worker::cpu
