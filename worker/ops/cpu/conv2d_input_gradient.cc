#include "worker/ops/cpu/conv2d_input_gradient.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "worker/ops/cpu/layouts.h"

namespace lockstep::worker::cpu {
namespace {

// Below this many channels oneDNN 2.6's forward kernels do not fill their registers: 0.6 to 1 times
// the speed of its backward pass. From here on they have 1.2 to 1.8 times its speed.
constexpr int64_t kFewestChannels = 32;
// The kernels of which this is true. The older ones are no faster forward than backward.
constexpr char kFastForward[] = "brgconv:";

}  // namespace

Conv2DInputGradient::Conv2DInputGradient(OneDnn* onednn, const Conv2DOptions& options,
                                         const dnnl::convolution_forward::primitive_desc& forward)
    : pixels_(options.window.extent[0] * options.window.extent[1]),
      floats_per_pixel_(options.input.channels * options.output.channels) {
  if (!UseTurnedKernel(onednn, options)) UseBackwardPass(onednn, options, forward);
}

void Conv2DInputGradient::Run(const float* output_gradient, const float* kernel,
                              float* input_gradient) {
  if (!turned_.empty()) {
    for (int64_t pixel = 0; pixel < pixels_; ++pixel) {
      std::copy_n(kernel + pixel * floats_per_pixel_, floats_per_pixel_,
                  turned_.data() + (pixels_ - 1 - pixel) * floats_per_pixel_);
    }
    kernel = turned_.data();
  }
  product_.Bind(output_argument_, output_gradient);
  product_.Bind(DNNL_ARG_WEIGHTS, kernel_.Convert(kernel));
  product_.Bind(input_argument_, input_gradient);
  product_.Run();
}

bool Conv2DInputGradient::UseTurnedKernel(OneDnn* onednn, const Conv2DOptions& options) {
  using Forward = dnnl::convolution_forward;
  const Window& window = options.window;
  if (options.input.channels < kFewestChannels || window.stride != std::array<int64_t, 2>{1, 1}) {
    return false;
  }
  // A full correlation: every position where kernel and gradient touch, less what was padding.
  Dims before;
  Dims after;
  for (int axis : {0, 1}) {
    before.push_back(window.extent[axis] - 1 - window.pad_before[axis]);
    after.push_back(window.extent[axis] - 1 - window.pad_after[axis]);
  }
  const Desc from = ImageDesc(options.batch, options.output);
  const Desc to = ImageDesc(options.batch, options.input);
  const int64_t channels = options.input.channels;
  const int64_t filters = options.output.channels;
  const Dims kernel_dims = {channels, filters, window.extent[0], window.extent[1]};
  const Forward::primitive_desc description(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, from,
       FloatDesc(kernel_dims, Tag::any), to, Pair(window.stride), before, after},
      Primitive::Attributes(), onednn->engine());
  if (!absl::StartsWith(description.impl_info_str(), kFastForward)) return false;

  turned_.resize(pixels_ * floats_per_pixel_);
  const Desc plain(kernel_dims, dnnl::memory::data_type::f32,
                   Dims{filters, 1, window.extent[1] * floats_per_pixel_, floats_per_pixel_});
  kernel_ = Layout(onednn, plain, description.weights_desc(), Layout::Use::kRead);
  product_ = Primitive(
      onednn, description,
      {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, description.weights_desc()}, {DNNL_ARG_DST, to}});
  output_argument_ = DNNL_ARG_SRC;
  input_argument_ = DNNL_ARG_DST;
  return true;
}

void Conv2DInputGradient::UseBackwardPass(
    OneDnn* onednn, const Conv2DOptions& options,
    const dnnl::convolution_forward::primitive_desc& forward) {
  using Backward = dnnl::convolution_backward_data;
  const Window& window = options.window;
  const Desc input = ImageDesc(options.batch, options.input);
  const Desc output = ImageDesc(options.batch, options.output);
  const Backward::primitive_desc description(
      {dnnl::algorithm::convolution_direct, input, FloatDesc(KernelDims(options), Tag::any), output,
       Pair(window.stride), Pair(window.pad_before), Pair(window.pad_after)},
      Primitive::Attributes(), onednn->engine(), forward);
  kernel_ = Layout(onednn, FloatDesc(KernelDims(options), Tag::hwio), description.weights_desc(),
                   Layout::Use::kRead);
  product_ = Primitive(onednn, description,
                       {{DNNL_ARG_DIFF_SRC, input},
                        {DNNL_ARG_WEIGHTS, description.weights_desc()},
                        {DNNL_ARG_DIFF_DST, output}});
  output_argument_ = DNNL_ARG_DIFF_DST;
  input_argument_ = DNNL_ARG_DIFF_SRC;
}

}  // namespace lockstep::worker::cpu
