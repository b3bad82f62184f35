#include "worker/tower/pass.h"

#include "common/base/status_macros.h"
#include "worker/ops/add.h"
#include "worker/tower/op_builder.h"

namespace lockstep::worker {
namespace {

Shape Batched(int64_t batch, const Shape& example) {
  std::vector<int64_t> dims = {batch};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(dims);
}

}  // namespace

Pass::Pass(const ModelGraph& graph, const Schedule& schedule, const PassOptions& options)
    : options_(options),
      buffers_(graph, schedule, options),
      plan_(PlanMemory(buffers_.lives)),
      steps_(schedule.ops.size()) {}

absl::Status Pass::Prepare(const ModelGraph& graph, const Schedule& schedule, std::byte* memory,
                           const OpTable& ops, OpContext* context) {
  PlaceBuffers(graph, schedule, memory);
  return MakeOps(graph, schedule, ops, context);
}

void Pass::PlaceBuffers(const ModelGraph& graph, const Schedule& schedule, std::byte* memory) {
  constexpr int kNone = PassBuffers::kNone;
  const auto view = [&](int buffer, int node) {
    return MutableTensorView{DType::kFloat32, Batched(options_.batch, graph.nodes()[node].output),
                             buffer == kNone ? nullptr : memory + plan_.offsets[buffer]};
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const ScheduledOp& op = schedule.ops[i];
    Step& step = steps_[i];
    step.output = view(buffers_.value[op.output], op.output);
    step.output_gradient = view(buffers_.gradient[op.output], op.output);
    for (size_t input = 0; input < op.inputs.size(); ++input) {
      const ValueId from = op.inputs[input];
      const int node = op.input_nodes[input];
      step.inputs.push_back(view(buffers_.value[from], node));
      if (from == 0) step.feature_inputs.push_back(input);
      if (!options_.training) continue;
      const int partial = buffers_.partial[i][input];
      const MutableTensorView sum = view(buffers_.gradient[from], node);
      step.input_gradients.push_back(partial == kNone ? sum : view(partial, node));
      if (partial != kNone) step.contributions.push_back({input, sum, nullptr, {}, {}});
    }
  }
  scores_ = view(buffers_.value[schedule.scores], schedule.scores_node);
  scores_are_features_ = schedule.scores == 0;
  scores_gradient_ = view(buffers_.gradient[schedule.scores], schedule.scores_node);
}

absl::Status Pass::MakeOps(const ModelGraph& graph, const Schedule& schedule, const OpTable& ops,
                           OpContext* context) {
  const OpOptions common{options_.batch, options_.training};
  for (size_t i = 0; i < steps_.size(); ++i) {
    const ScheduledOp& op = schedule.ops[i];
    Step& step = steps_[i];
    LOCKSTEP_ASSIGN_OR_RETURN(step.op, BuildOp(graph, schedule, op, common, ops, context));
    for (Contribution& contribution : step.contributions) {
      const int64_t elements = contribution.sum.num_elements() / options_.batch;
      LOCKSTEP_ASSIGN_OR_RETURN(contribution.add, ops.Make(context, AddOptions{common, elements}));
    }
    step.variable_ids = graph.nodes()[op.node].variables;
    if (!graph.nodes()[op.node].layer.frozen()) {
      step.ready_ids.assign(step.variable_ids.rbegin(), step.variable_ids.rend());
    }
    step.variables.resize(step.variable_ids.size());
    step.rows.resize(step.variable_ids.size());
    step.variable_gradients.resize(step.variable_ids.size());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(loss_, BuildLoss(graph, options_.batch, ops, context));
  return absl::OkStatus();
}

absl::Status Pass::Forward(Mode mode, const TensorView& features, const VariableValues& variables,
                           uint64_t random_key, Stream* stream) {
  const bool whole = variables.rows.empty();
  for (Step& step : steps_) {
    for (size_t input : step.feature_inputs) step.inputs[input].data = features.data;
    for (size_t i = 0; i < step.variable_ids.size(); ++i) {
      step.variables[i] = variables.views[step.variable_ids[i]];
      if (!whole) step.rows[i] = variables.rows[step.variable_ids[i]];
    }
    step.forward_args = {mode, random_key, step.inputs, step.variables, step.output};
    if (!whole) step.forward_args.rows = step.rows;
    LOCKSTEP_RETURN_IF_ERROR(step.op->Forward(step.forward_args, stream));
  }
  if (scores_are_features_) scores_.data = features.data;
  return absl::OkStatus();
}

absl::Status Pass::Train(const TensorView& labels, const MutableTensorView& loss, Stream* stream) {
  loss_args_ = {scores_, labels, scores_gradient_, loss};
  return loss_->Train(loss_args_, stream);
}

absl::Status Pass::Evaluate(const TensorView& labels, const MutableTensorView& sums,
                            Stream* stream) {
  loss_args_ = {scores_, labels, {}, sums};
  return loss_->Evaluate(loss_args_, stream);
}

absl::Status Pass::Predict(const MutableTensorView& predictions, Stream* stream) {
  loss_args_ = {scores_, {}, {}, predictions};
  return loss_->Predict(loss_args_, stream);
}

absl::Status Pass::Backward(std::span<const MutableTensorView> gradients,
                            absl::FunctionRef<void(std::span<const int> variables)> complete,
                            Stream* stream) {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->output_gradient.data == nullptr) continue;
    for (size_t i = 0; i < step->variable_ids.size(); ++i) {
      step->variable_gradients[i] = gradients[step->variable_ids[i]];
    }
    step->backward_args = {step->inputs,          step->variables,       step->output,
                           step->output_gradient, step->input_gradients, step->variable_gradients};
    LOCKSTEP_RETURN_IF_ERROR(step->op->Backward(step->backward_args, stream));
    for (Contribution& contribution : step->contributions) {
      contribution.terms = {contribution.sum, step->input_gradients[contribution.input]};
      contribution.args = {Mode::kTraining, 0, contribution.terms, {}, contribution.sum};
      LOCKSTEP_RETURN_IF_ERROR(contribution.add->Forward(contribution.args, stream));
    }
    if (!step->ready_ids.empty()) complete(step->ready_ids);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
