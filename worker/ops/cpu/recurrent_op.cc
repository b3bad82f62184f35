#include "worker/ops/cpu/recurrent_op.h"

#include <algorithm>
#include <cstring>

#include "worker/ops/cpu/parallel.h"

namespace lockstep::worker::cpu {
namespace {

// [outer, inner, width] to [inner, outer, width].
void SwapOuter(const float* from, int64_t outer, int64_t inner, int64_t width, float* to) {
  ParallelFor(inner, std::max<int64_t>(kElementGrain / (outer * width), 1),
              [&](int, int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  for (int64_t o = 0; o < outer; ++o) {
                    std::memcpy(to + (i * outer + o) * width, from + (o * inner + i) * width,
                                width * sizeof(float));
                  }
                }
              });
}

}  // namespace

RecurrentOp::RecurrentOp(OneDnn* onednn, const RecurrentOptions& options, int gates,
                         bool reset_after)
    : options_(options), width_(gates * options.units), reset_after_(reset_after) {
  const int64_t rows = options.time * options.batch;
  InnerProductOptions product;
  product.training = options.training;
  product.rows = rows;
  product.inputs = options.inputs;
  product.outputs = width_;
  product.bias = options.bias;
  product.kernel_gradient = options.variable_gradients;
  product.input_gradient = options.input_gradient;
  input_product_ = InnerProduct(onednn, product);

  product.rows = options.batch;
  product.inputs = options.units;
  product.bias = options.bias && reset_after;
  product.kernel_gradient = false;
  product.input_gradient = true;
  state_product_ = InnerProduct(onednn, product);

  x_.resize(rows * options.inputs);
  gates_.resize(rows * width_);
  state_gates_.resize((reset_after ? rows : options.batch) * width_);
  hidden_.resize((options.time + 1) * options.batch * options.units);
  if (!options.training) return;
  product.rows = rows;
  product.kernel_gradient = options.variable_gradients;
  product.input_gradient = false;
  state_products_ = InnerProduct(onednn, product);
  bias_gradient_ = BiasGradient(rows, width_);
  dh_.resize(options.batch * options.units);
  carried_.resize(options.batch * options.units);
}

int64_t RecurrentOp::RowGrain() const { return std::max<int64_t>(kElementGrain / width_, 1); }

void RecurrentOp::CopyState(const TensorView* from, float* to) const {
  const int64_t elements = options_.batch * options_.units;
  if (from == nullptr) {
    std::fill_n(to, elements, 0.0f);
  } else {
    std::memcpy(to, from->data, elements * sizeof(float));
  }
}

void RecurrentOp::RunForward(const ForwardArgs& args) {
  const int64_t time = options_.time;
  const float* const bias = options_.bias ? args.variables[kBias].as<float>().data() : nullptr;
  SwapOuter(args.inputs[0].as<float>().data(), batch(), time, options_.inputs, x_.data());
  input_product_.Forward(x_.data(), args.variables[kKernel].as<float>().data(), bias,
                         gates_.data());
  CopyState(has_initial_states() ? &args.inputs[1] : nullptr, Hidden(0));
  BeginForward(args);
  const float* const recurrent_kernel = args.variables[kRecurrentKernel].as<float>().data();
  for (int64_t step = 0; step < time; ++step) {
    state_product_.Forward(Hidden(step), recurrent_kernel,
                           bias == nullptr ? nullptr : bias + width_, StateGates(step));
    ParallelFor(batch(), RowGrain(),
                [&](int, int64_t begin, int64_t end) { Activate(step, begin, end); });
  }
  float* const output = args.output.as<float>().data();
  if (options_.return_sequences) {
    SwapOuter(Hidden(1), time, batch(), units(), output);
  } else {
    std::memcpy(output, Hidden(time), batch() * units() * sizeof(float));
  }
}

void RecurrentOp::RunBackward(const BackwardArgs& args) {
  std::ranges::fill(dh_, 0.0f);
  BeginBackward();
  const float* const recurrent_kernel = args.variables[kRecurrentKernel].as<float>().data();
  for (int64_t step = options_.time - 1; step >= 0; --step) {
    AddOutputGradient(args.output_gradient, step);
    ParallelFor(batch(), RowGrain(), [&](int, int64_t begin, int64_t end) {
      Differentiate(step, begin, end, dh_.data());
    });
    state_product_.InputGradient(recurrent_kernel, reset_after_ ? StateGates(step) : Gates(step),
                                 carried_.data());
    for (size_t i = 0; i < dh_.size(); ++i) dh_[i] += carried_[i];
  }
  if (options_.variable_gradients) WriteVariableGradients(args);
  if (!options_.input_gradient) return;
  if (has_initial_states() && args.input_gradients[1].data != nullptr) {
    std::memcpy(args.input_gradients[1].data, dh_.data(), dh_.size() * sizeof(float));
  }
  EndBackward(args);
  if (args.input_gradients[0].data == nullptr) return;
  // The copy of the input has served.
  input_product_.InputGradient(args.variables[kKernel].as<float>().data(), gates_.data(),
                               x_.data());
  SwapOuter(x_.data(), options_.time, batch(), options_.inputs,
            static_cast<float*>(args.input_gradients[0].data));
}

void RecurrentOp::AddOutputGradient(const MutableTensorView& gradient, int64_t step) {
  if (!options_.return_sequences && step != options_.time - 1) return;
  const int64_t stride = options_.return_sequences ? options_.time * units() : units();
  const float* from =
      gradient.as<float>().data() + (options_.return_sequences ? step * units() : 0);
  for (int64_t row = 0; row < batch(); ++row, from += stride) {
    float* const to = &dh_[row * units()];
    for (int64_t j = 0; j < units(); ++j) to[j] += from[j];
  }
}

void RecurrentOp::WriteVariableGradients(const BackwardArgs& args) {
  float* const state_gates = reset_after_ ? state_gates_.data() : gates_.data();
  input_product_.KernelGradient(x_.data(), gates_.data(),
                                args.variable_gradients[kKernel].as<float>().data());
  state_products_.KernelGradient(hidden_.data(), state_gates,
                                 args.variable_gradients[kRecurrentKernel].as<float>().data());
  if (!options_.bias) return;
  float* const bias = args.variable_gradients[kBias].as<float>().data();
  bias_gradient_.Run(nullptr, gates_.data(), bias);
  if (reset_after_) bias_gradient_.Run(nullptr, state_gates, bias + width_);
}

}  // namespace lockstep::worker::cpu
