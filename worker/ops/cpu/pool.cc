#include "worker/ops/pool.h"

#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/layouts.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

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
  }

  void RunBackward(const BackwardArgs& args) override {
    if (!options_.input_gradient) return;
    backward_.Bind(DNNL_ARG_DIFF_SRC, args.input_gradients[0].data);
    backward_.Bind(DNNL_ARG_DIFF_DST, args.output_gradient.data);
    backward_.Run();
  }

 private:
  const PoolOptions options_;
  dnnl::memory places_;
  Primitive forward_;
  Primitive backward_;
};

std::unique_ptr<Op> MakePool(OneDnn* onednn, const PoolOptions& options) {
  return std::make_unique<PoolOp>(onednn, options);
}

const Registration<&MakePool> kPool;

}  // namespace
}  // namespace lockstep::worker::cpu
