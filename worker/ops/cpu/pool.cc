#include "worker/ops/pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/layouts.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

// [begin, end)
struct Range {
  int64_t begin;
  int64_t end;
};

bool HasNaN(std::span<const float> values) {
  std::atomic<bool> has = false;
  ParallelFor(std::ssize(values), kElementGrain, [&](int, int64_t begin, int64_t end) {
    int found = 0;
    for (int64_t i = begin; i < end; ++i) found |= std::isnan(values[i]);
    if (found) has = true;
  });
  return has;
}

class PoolOp : public CpuOp {
 public:
  PoolOp(OneDnn* onednn, const PoolOptions& options) : options_(options) {
    using Forward = dnnl::pooling_forward;
    using Backward = dnnl::pooling_backward;
    const auto algorithm = options.kind == PoolKind::kMax
                               ? dnnl::algorithm::pooling_max
                               : dnnl::algorithm::pooling_avg_exclude_padding;
    const Window& window = options.window;
    const Desc input = ImageDesc(options.batch, options.input);
    const Desc output = ImageDesc(options.batch, options.output);
    const Dims stride = Pair(window.stride);
    const Dims extent = Pair(window.extent);
    const Dims before = Pair(window.pad_before);
    const Dims after = Pair(window.pad_after);
    const dnnl::engine& engine = onednn->engine();

    const Forward::primitive_desc forward(
        {options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
         algorithm, input, output, stride, extent, before, after},
        Primitive::Attributes(), engine);
    // Where the maximum of each window was. Of a mean there is nothing to remember.
    const Desc places = forward.workspace_desc();
    forward_ =
        Primitive(onednn, forward,
                  {{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, output}, {DNNL_ARG_WORKSPACE, places}});
    if (!options.training) return;
    places_ = dnnl::memory(places, engine);
    forward_.Bind(DNNL_ARG_WORKSPACE, places_.get_data_handle());
    if (!options.input_gradient) return;
    const Backward::primitive_desc backward(
        {algorithm, input, output, stride, extent, before, after}, Primitive::Attributes(), engine,
        forward);
    backward_ = Primitive(
        onednn, backward,
        {{DNNL_ARG_DIFF_SRC, input}, {DNNL_ARG_DIFF_DST, output}, {DNNL_ARG_WORKSPACE, places}});
    backward_.Bind(DNNL_ARG_WORKSPACE, places_.get_data_handle());
  }

  void RunForward(const ForwardArgs& args) override {
    forward_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
    forward_.Bind(DNNL_ARG_DST, args.output.data);
    forward_.Run();
    const std::span<const float> x = args.inputs[0].as<float>();
    if (options_.kind == PoolKind::kMax && HasNaN(x)) KeepNaNs(x, args.output.as<float>());
  }

  void RunBackward(const BackwardArgs& args) override {
    if (!options_.input_gradient) return;
    backward_.Bind(DNNL_ARG_DIFF_SRC, args.input_gradients[0].data);
    backward_.Bind(DNNL_ARG_DIFF_DST, args.output_gradient.data);
    backward_.Run();
  }

 private:
  // oneDNN's maximum ignores a NaN beside a number.
  void KeepNaNs(std::span<const float> x, std::span<float> y) const {
    const ImageShape& input = options_.input;
    for (int64_t i = 0; i < std::ssize(x); ++i) {
      if (!std::isnan(x[i])) continue;
      const int64_t pixel = i / input.channels;
      const Range rows = WindowsOf(pixel / input.width % input.height, 0);
      const Range columns = WindowsOf(pixel % input.width, 1);
      const int64_t example = pixel / input.width / input.height;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          const int64_t line = example * options_.output.height + row;
          y[(line * options_.output.width + column) * input.channels + i % input.channels] = x[i];
        }
      }
    }
  }

  // The outputs [begin, end) whose window has this row (dimension 0) or column (1) of the image.
  Range WindowsOf(int64_t place, int dimension) const {
    const Window& window = options_.window;
    const int64_t stride = window.stride[dimension];
    const int64_t outputs = dimension == 0 ? options_.output.height : options_.output.width;
    const int64_t last = place + window.pad_before[dimension];
    const int64_t first = std::max<int64_t>(last - window.extent[dimension] + 1, 0);
    return {(first + stride - 1) / stride, std::min(last / stride + 1, outputs)};
  }

  const PoolOptions options_;
  dnnl::memory places_;
  Primitive forward_;
  Primitive backward_;
};

OpTable::MadeOr<Op> MakePool(OneDnn* onednn, const PoolOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPoolAxes(options));
  return std::make_unique<PoolOp>(onednn, options);
}

const Registration<&MakePool> kPool;

}  // namespace
}  // namespace lockstep::worker::cpu
