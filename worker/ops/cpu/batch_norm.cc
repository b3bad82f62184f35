#include "worker/ops/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/layouts.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/cpu/relu.h"

namespace lockstep::worker::cpu {
namespace {

class BatchNormOp : public CpuOp {
  enum Variable { kGamma, kBeta, kMovingMean, kMovingVariance };

 public:
  BatchNormOp(OneDnn* onednn, const BatchNormOptions& options)
      : options_(options),
        mean_(options.channels),
        variance_(options.channels),
        factor_(options.channels) {
    using Forward = dnnl::batch_normalization_forward;
    using Backward = dnnl::batch_normalization_backward;
    using Flags = dnnl::normalization_flags;
    const Desc data = ImageDesc(options.batch, {options.positions, 1, options.channels});
    const Desc channels = FloatDesc({options.channels}, Tag::x);
    Flags flags = Flags::use_scale | Flags::use_shift;
    const dnnl::engine& engine = onednn->engine();

    const Forward::primitive_desc inference({dnnl::prop_kind::forward_inference, data,
                                             options.epsilon, flags | Flags::use_global_stats},
                                            Primitive::Attributes(), engine);
    inference_ = Primitive(onednn, inference,
                           {{DNNL_ARG_SRC, data},
                            {DNNL_ARG_MEAN, channels},
                            {DNNL_ARG_VARIANCE, channels},
                            {DNNL_ARG_SCALE, channels},
                            {DNNL_ARG_SHIFT, channels},
                            {DNNL_ARG_DST, data}});
    if (!options.training || options.frozen) return;
    if (!options.variable_gradients) {
      gamma_gradient_.resize(options.channels);
      beta_gradient_.resize(options.channels);
    }
    if (options.relu) flags |= Flags::fuse_norm_relu;
    const Forward::primitive_desc training(
        {dnnl::prop_kind::forward_training, data, options.epsilon, flags}, Primitive::Attributes(),
        engine);
    // Which elements the relu has cut off.
    const Desc cut_off = training.workspace_desc();
    cut_off_ = dnnl::memory(cut_off, engine);
    training_ = Primitive(onednn, training,
                          {{DNNL_ARG_SRC, data},
                           {DNNL_ARG_MEAN, channels},
                           {DNNL_ARG_VARIANCE, channels},
                           {DNNL_ARG_SCALE, channels},
                           {DNNL_ARG_SHIFT, channels},
                           {DNNL_ARG_DST, data},
                           {DNNL_ARG_WORKSPACE, cut_off}});
    training_.Bind(DNNL_ARG_WORKSPACE, cut_off_.get_data_handle());
    training_.Bind(DNNL_ARG_MEAN, mean_.data());
    training_.Bind(DNNL_ARG_VARIANCE, variance_.data());

    // Gradients of gamma and beta come with that of the input, so that one is always computed.
    const Backward::primitive_desc backward(
        {dnnl::prop_kind::backward, data, data, options.epsilon, flags}, Primitive::Attributes(),
        engine, training);
    backward_ = Primitive(onednn, backward,
                          {{DNNL_ARG_SRC, data},
                           {DNNL_ARG_MEAN, channels},
                           {DNNL_ARG_VARIANCE, channels},
                           {DNNL_ARG_SCALE, channels},
                           {DNNL_ARG_SHIFT, channels},
                           {DNNL_ARG_DIFF_DST, data},
                           {DNNL_ARG_WORKSPACE, cut_off},
                           {DNNL_ARG_DIFF_SRC, data},
                           {DNNL_ARG_DIFF_SCALE, channels},
                           {DNNL_ARG_DIFF_SHIFT, channels}});
    backward_.Bind(DNNL_ARG_WORKSPACE, cut_off_.get_data_handle());
    backward_.Bind(DNNL_ARG_MEAN, mean_.data());
    backward_.Bind(DNNL_ARG_VARIANCE, variance_.data());
  }

  void RunForward(const ForwardArgs& args) override {
    const bool of_batch = args.mode == Mode::kTraining && !options_.frozen;
    Primitive& forward = of_batch ? training_ : inference_;
    if (!of_batch) {
      forward.Bind(DNNL_ARG_MEAN, args.variables[kMovingMean].data);
      forward.Bind(DNNL_ARG_VARIANCE, args.variables[kMovingVariance].data);
    }
    forward.Bind(DNNL_ARG_SRC, args.inputs[0].data);
    forward.Bind(DNNL_ARG_SCALE, args.variables[kGamma].data);
    forward.Bind(DNNL_ARG_SHIFT, args.variables[kBeta].data);
    forward.Bind(DNNL_ARG_DST, args.output.data);
    forward.Run();
    if (!options_.relu) return;
    if (!of_batch) return ApplyRelu(args.output.as<float>());
    KeepNaNs(args);
  }

  void RunBackward(const BackwardArgs& args) override {
    if (!options_.variable_gradients && !options_.input_gradient) return;
    if (options_.frozen) return BackwardFrozen(args);
    if (options_.variable_gradients) {
      Update(mean_, args.variables[kMovingMean], args.variable_gradients[kMovingMean]);
      Update(variance_, args.variables[kMovingVariance], args.variable_gradients[kMovingVariance]);
    }
    backward_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
    backward_.Bind(DNNL_ARG_SCALE, args.variables[kGamma].data);
    backward_.Bind(DNNL_ARG_SHIFT, args.variables[kBeta].data);
    backward_.Bind(DNNL_ARG_DIFF_DST, args.output_gradient.data);
    // Each element of the gradient is read before it is written.
    backward_.Bind(DNNL_ARG_DIFF_SRC, options_.input_gradient ? args.input_gradients[0].data
                                                              : args.output_gradient.data);
    const bool is_wanted = options_.variable_gradients;
    backward_.Bind(DNNL_ARG_DIFF_SCALE,
                   is_wanted ? args.variable_gradients[kGamma].data : gamma_gradient_.data());
    backward_.Bind(DNNL_ARG_DIFF_SHIFT,
                   is_wanted ? args.variable_gradients[kBeta].data : beta_gradient_.data());
    backward_.Run();
  }

 private:
  // The relu that oneDNN has fused turns a NaN into 0. An input that is not finite, or a sum that
  // is not, makes the mean or the variance of its channel so, and all of the channel a NaN.
  void KeepNaNs(const ForwardArgs& args) const {
    const std::span<const float> gamma = args.variables[kGamma].as<float>();
    const std::span<const float> beta = args.variables[kBeta].as<float>();
    const std::span<float> y = args.output.as<float>();
    for (int64_t c = 0; c < options_.channels; ++c) {
      const bool has_moments = std::isfinite(mean_[c]) && !std::isnan(variance_[c]);
      if (has_moments && !std::isnan(gamma[c]) && !std::isnan(beta[c])) continue;
      for (size_t i = c; i < y.size(); i += options_.channels) y[i] = std::nanf("");
    }
  }

  // All that lies between input and output is one factor per channel.
  void BackwardFrozen(const BackwardArgs& args) {
    const int64_t channels = options_.channels;
    const std::span<const float> gamma = args.variables[kGamma].as<float>();
    const std::span<const float> variance = args.variables[kMovingVariance].as<float>();
    for (int64_t c = 0; c < channels; ++c) {
      factor_[c] = gamma[c] / std::sqrt(variance[c] + options_.epsilon);
    }
    const float* const y = args.output.as<float>().data();
    const float* const from = args.output_gradient.as<float>().data();
    float* const to = args.input_gradients[0].as<float>().data();
    ParallelFor(options_.batch * options_.positions, std::max<int64_t>(kElementGrain / channels, 1),
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t i = begin * channels; i < end * channels; i += channels) {
                    for (int64_t c = 0; c < channels; ++c) {
                      const bool cut_off = options_.relu && !(y[i + c] > 0);
                      to[i + c] = cut_off ? 0.0f : from[i + c] * factor_[c];
                    }
                  }
                });
  }

  void Update(const std::vector<float>& batch, TensorView old, MutableTensorView updated) const {
    const std::span<const float> from = old.as<float>();
    const std::span<float> to = updated.as<float>();
    for (int64_t c = 0; c < options_.channels; ++c) {
      to[c] = options_.momentum * from[c] + (1 - options_.momentum) * batch[c];
    }
  }

  const BatchNormOptions options_;
  std::vector<float> mean_;  // of the last batch
  std::vector<float> variance_;
  std::vector<float> factor_;  // of frozen channels, from gradient to gradient
  // That nobody wants.
  std::vector<float> gamma_gradient_;
  std::vector<float> beta_gradient_;
  dnnl::memory cut_off_;
  Primitive inference_;
  Primitive training_;
  Primitive backward_;
};

std::unique_ptr<Op> MakeBatchNorm(OneDnn* onednn, const BatchNormOptions& options) {
  return std::make_unique<BatchNormOp>(onednn, options);
}

const Registration<&MakeBatchNorm> kBatchNorm;

}  // namespace
}  // namespace lockstep::worker::cpu
