#include "worker/ops/cuda/recurrent_op.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {
namespace {

absl::StatusOr<DeviceBuffer> AllocateFloats(CudaContext* context, int64_t elements) {
  return context->device()->Allocate(static_cast<size_t>(elements) * sizeof(float));
}

void Copy(void* to, const void* from, int64_t elements, Stream* stream) {
  static_cast<CudaStream*>(stream)->CopyOnDevice(to, from,
                                                 static_cast<size_t>(elements) * sizeof(float));
}

}  // namespace

absl::StatusOr<RecurrentParts> RecurrentParts::Make(CudaContext* context,
                                                    const RecurrentOptions& options,
                                                    const RecurrentKind& kind) {
  const int64_t rows = options.time * options.batch;
  const int64_t width = kind.gates * options.units;
  const bool has_gradients = options.training && options.variable_gradients;
  LOCKSTEP_ASSIGN_OR_RETURN(
      InnerProduct input_product,
      InnerProduct::Create(context,
                           {.rows = rows,
                            .inputs = options.inputs,
                            .outputs = width,
                            .bias = options.bias,
                            .kernel_gradient = has_gradients,
                            .input_gradient = options.training && options.input_gradient}));
  // A step, and the second of two biases, begins anywhere.
  const bool is_aligned = options.batch * options.units % 4 == 0 && width % 4 == 0;
  LOCKSTEP_ASSIGN_OR_RETURN(InnerProduct state_product,
                            InnerProduct::Create(context, {.rows = options.batch,
                                                           .inputs = options.units,
                                                           .outputs = width,
                                                           .bias = options.bias && kind.reset_after,
                                                           .kernel_gradient = false,
                                                           .input_gradient = options.training,
                                                           .alignment = is_aligned ? 16u : 4u}));
  LOCKSTEP_ASSIGN_OR_RETURN(InnerProduct state_products,
                            InnerProduct::Create(context, {.rows = rows,
                                                           .inputs = options.units,
                                                           .outputs = width,
                                                           .bias = false,
                                                           .forward = false,
                                                           .kernel_gradient = has_gradients,
                                                           .input_gradient = false}));
  LOCKSTEP_ASSIGN_OR_RETURN(ColumnSums bias_gradient, ColumnSums::Create(context, rows, width));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto swap_outer,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_swap_outer));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto add_rows, LOCKSTEP_FIND_KERNEL(context, lockstep_add_rows));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto add, LOCKSTEP_FIND_KERNEL(context, lockstep_add));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto fill, LOCKSTEP_FIND_KERNEL(context, lockstep_fill));
  RecurrentParts parts{std::move(input_product),
                       std::move(state_product),
                       std::move(state_products),
                       std::move(bias_gradient),
                       swap_outer,
                       add_rows,
                       add,
                       fill,
                       {},
                       {},
                       {},
                       {},
                       {},
                       {}};
  const int64_t state = options.batch * options.units;
  LOCKSTEP_ASSIGN_OR_RETURN(parts.x, AllocateFloats(context, rows * options.inputs));
  LOCKSTEP_ASSIGN_OR_RETURN(parts.gates, AllocateFloats(context, rows * width));
  LOCKSTEP_ASSIGN_OR_RETURN(
      parts.state_gates,
      AllocateFloats(context, (kind.reset_after ? rows : options.batch) * width));
  LOCKSTEP_ASSIGN_OR_RETURN(parts.hidden, AllocateFloats(context, (options.time + 1) * state));
  if (!options.training) return parts;
  LOCKSTEP_ASSIGN_OR_RETURN(parts.dh, AllocateFloats(context, state));
  LOCKSTEP_ASSIGN_OR_RETURN(parts.carried, AllocateFloats(context, state));
  return parts;
}

RecurrentOp::RecurrentOp(const RecurrentOptions& options, const RecurrentKind& kind,
                         RecurrentParts parts)
    : options_(options),
      kind_(kind),
      width_(kind.gates * options.units),
      parts_(std::move(parts)) {}

void RecurrentOp::CopyState(const TensorView* from, float* to, Stream* stream) const {
  if (from == nullptr) {
    Zero(to, stream);
  } else {
    Copy(to, from->data, state_elements(), stream);
  }
}

void RecurrentOp::Zero(float* to, Stream* stream) const {
  parts_.fill.Launch(stream, state_elements(), to, 0.0f, state_elements());
}

absl::Status RecurrentOp::Forward(const ForwardArgs& args, Stream* stream) {
  const int64_t time = options_.time;
  const float* const bias = options_.bias ? args.variables[kBias].as<float>().data() : nullptr;
  const int64_t input_elements = time * batch() * options_.inputs;
  parts_.swap_outer.Launch(stream, input_elements, At(parts_.x, 0),
                           args.inputs[0].as<float>().data(), batch(), time, options_.inputs);
  LOCKSTEP_RETURN_IF_ERROR(parts_.input_product.Forward(
      At(parts_.x, 0), args.variables[kKernel].as<float>().data(), bias, Gates(0), stream));
  CopyState(has_initial_states() ? &args.inputs[1] : nullptr, Hidden(0), stream);
  BeginForward(args, stream);
  const float* const recurrent_kernel = args.variables[kRecurrentKernel].as<float>().data();
  const float* const state_bias = bias == nullptr ? nullptr : bias + width_;
  for (int64_t step = 0; step < time; ++step) {
    LOCKSTEP_RETURN_IF_ERROR(parts_.state_product.Forward(Hidden(step), recurrent_kernel,
                                                          kind_.reset_after ? state_bias : nullptr,
                                                          StateGates(step), stream));
    Activate(step, stream);
  }
  float* const output = args.output.as<float>().data();
  if (options_.return_sequences) {
    parts_.swap_outer.Launch(stream, time * state_elements(), output, Hidden(1), time, batch(),
                             units());
  } else {
    Copy(output, Hidden(time), state_elements(), stream);
  }
  return absl::OkStatus();
}

absl::Status RecurrentOp::Backward(const BackwardArgs& args, Stream* stream) {
  LOCKSTEP_RETURN_IF_ERROR(DifferentiateSteps(args, stream));
  if (options_.variable_gradients) {
    LOCKSTEP_RETURN_IF_ERROR(WriteVariableGradients(args, stream));
  }
  if (!options_.input_gradient) return absl::OkStatus();
  if (has_initial_states() && args.input_gradients[1].data != nullptr) {
    Copy(args.input_gradients[1].data, At(parts_.dh, 0), state_elements(), stream);
  }
  EndBackward(args, stream);
  if (args.input_gradients[0].data == nullptr) return absl::OkStatus();
  // The copy of the input has served.
  LOCKSTEP_RETURN_IF_ERROR(parts_.input_product.InputGradient(
      args.variables[kKernel].as<float>().data(), Gates(0), At(parts_.x, 0), stream));
  parts_.swap_outer.Launch(stream, options_.time * batch() * options_.inputs,
                           static_cast<float*>(args.input_gradients[0].data), At(parts_.x, 0),
                           options_.time, batch(), options_.inputs);
  return absl::OkStatus();
}

absl::Status RecurrentOp::DifferentiateSteps(const BackwardArgs& args, Stream* stream) {
  float* const dh = At(parts_.dh, 0);
  float* const carried = At(parts_.carried, 0);
  Zero(dh, stream);
  BeginBackward(stream);
  const float* const recurrent_kernel = args.variables[kRecurrentKernel].as<float>().data();
  for (int64_t step = options_.time - 1; step >= 0; --step) {
    AddOutputGradient(args.output_gradient, step, stream);
    Differentiate(step, dh, stream);
    LOCKSTEP_RETURN_IF_ERROR(parts_.state_product.InputGradient(
        recurrent_kernel, kind_.reset_after ? StateGates(step) : Gates(step), carried, stream));
    parts_.add.Launch(stream, state_elements(), dh, dh, carried, state_elements());
  }
  return absl::OkStatus();
}

void RecurrentOp::AddOutputGradient(const MutableTensorView& gradient, int64_t step,
                                    Stream* stream) const {
  if (!options_.return_sequences && step != options_.time - 1) return;
  const int64_t stride = options_.return_sequences ? options_.time * units() : units();
  const float* const from =
      gradient.as<float>().data() + (options_.return_sequences ? step * units() : 0);
  parts_.add_rows.Launch(stream, state_elements(), At(parts_.dh, 0), from, stride, batch(),
                         units());
}

absl::Status RecurrentOp::WriteVariableGradients(const BackwardArgs& args, Stream* stream) const {
  const float* const state_gates = kind_.reset_after ? StateGates(0) : Gates(0);
  LOCKSTEP_RETURN_IF_ERROR(parts_.input_product.KernelGradient(
      At(parts_.x, 0), Gates(0), args.variable_gradients[kKernel].as<float>().data(), stream));
  LOCKSTEP_RETURN_IF_ERROR(parts_.state_products.KernelGradient(
      Hidden(0), state_gates, args.variable_gradients[kRecurrentKernel].as<float>().data(),
      stream));
  if (!options_.bias) return absl::OkStatus();
  float* const bias = args.variable_gradients[kBias].as<float>().data();
  parts_.bias_gradient.Launch(stream, bias, Gates(0));
  if (kind_.reset_after) parts_.bias_gradient.Launch(stream, bias + width_, state_gates);
  return absl::OkStatus();
}

}  // namespace lockstep::worker::cuda
