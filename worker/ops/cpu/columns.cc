#include "worker/ops/columns.h"

#include <algorithm>
#include <cstring>

#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

class ColumnsOp : public CpuOp {
 public:
  explicit ColumnsOp(const ColumnsOptions& options)
      : options_(options), rows_(options.batch * options.positions) {}

  void RunForward(const ForwardArgs& args) override {
    const float* const from = args.inputs[0].as<float>().data() + options_.first;
    float* const to = args.output.as<float>().data();
    ForRows(options_.count, [&](int64_t row) {
      std::memcpy(to + row * options_.count, from + row * options_.channels,
                  options_.count * sizeof(float));
    });
  }

  void RunBackward(const BackwardArgs& args) override {
    if (!options_.input_gradient) return;
    const float* const from = args.output_gradient.as<float>().data();
    float* const to = args.input_gradients[0].as<float>().data();
    ForRows(options_.channels, [&](int64_t row) {
      float* const line = to + row * options_.channels;
      std::fill_n(line, options_.first, 0.0f);
      std::memcpy(line + options_.first, from + row * options_.count,
                  options_.count * sizeof(float));
      std::fill(line + options_.first + options_.count, line + options_.channels, 0.0f);
    });
  }

 private:
  // Each row writes so many elements.
  template <typename CopyRow>
  void ForRows(int64_t elements, const CopyRow& copy) const {
    ParallelFor(rows_, std::max<int64_t>(kElementGrain / elements, 1),
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) copy(row);
                });
  }

  const ColumnsOptions options_;
  const int64_t rows_;
};

std::unique_ptr<Op> MakeColumns(OneDnn*, const ColumnsOptions& options) {
  return std::make_unique<ColumnsOp>(options);
}

const Registration<&MakeColumns> kColumns;

}  // namespace
}  // namespace lockstep::worker::cpu
