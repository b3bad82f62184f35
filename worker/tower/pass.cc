#include "worker/tower/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/model/loss_rules.h"
#include "worker/tower/op_builder.h"

namespace lockstep::worker {
namespace {

Shape Batched(int64_t batch, const Shape& example) {
  std::vector<int64_t> dims = {batch};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(dims);
}

absl::Status OfLayer(const std::string& name, const absl::Status& status) {
  return status.ok() ? status : Annotate(status, absl::StrCat("layer \"", name, "\""));
}

}  // namespace

Pass::Pass(const ModelGraph& graph, const TowerSchedule& schedule, const PassOptions& options)
    : options_(options),
      buffers_(graph, schedule, options),
      plan_(PlanMemory(buffers_.lives)),
      steps_(schedule.ops.size()) {}

absl::Status Pass::Prepare(const ModelGraph& graph, const TowerSchedule& schedule,
                           std::byte* memory, const OpTable& ops, OpContext* context) {
  PlaceBuffers(graph, schedule, memory);
  PlaceLosses(graph, schedule, memory);
  if (options_.training) PlaceShared(graph, schedule, memory);
  LOCKSTEP_RETURN_IF_ERROR(MakeOps(graph, schedule, ops, context));
  return MakeSums(ops, context);
}

MutableTensorView Pass::ViewOf(int buffer, const Shape& shape, std::byte* memory,
                               DType type) const {
  return {type, shape, buffer == PassBuffers::kNone ? nullptr : memory + plan_.offsets[buffer]};
}

void Pass::PlaceBuffers(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory) {
  constexpr int kNone = PassBuffers::kNone;
  const auto view = [&](int buffer, int node, ValueId value) {
    return ViewOf(buffer, Batched(options_.batch, graph.nodes()[node].output), memory,
                  schedule.types[value]);
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const ScheduledOp& op = schedule.ops[i];
    Step& step = steps_[i];
    const int shape = schedule.shape_nodes[op.output];
    step.output = view(buffers_.value[op.output], shape, op.output);
    step.output_gradient = view(buffers_.gradient[op.output], shape, op.output);
    for (size_t input = 0; input < op.inputs.size(); ++input) {
      const ValueId from = op.inputs[input];
      const int node = op.input_nodes[input];
      step.inputs.push_back(view(buffers_.value[from], node, from));
      if (from <= graph.num_state_inputs()) step.batch_inputs.push_back({input, from});
      if (!options_.training) continue;
      const int partial = buffers_.partial[i][input];
      const MutableTensorView sum = view(buffers_.gradient[from], node, from);
      step.input_gradients.push_back(partial == kNone ? sum : view(partial, node, from));
      if (partial != kNone) step.contributions.push_back({input, sum, nullptr});
    }
  }
}

void Pass::PlaceLosses(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory) {
  for (size_t k = 0; k < schedule.losses.size(); ++k) {
    const ScheduledLoss& of = schedule.losses[k];
    const Shape scores = Batched(options_.batch, graph.nodes()[of.scores_node].output);
    LossStep& step = losses_.emplace_back();
    step.node = of.node;
    step.layer = graph.nodes()[of.node].name;
    step.scores = ViewOf(buffers_.value[of.scores], scores, memory);
    if (of.scores <= graph.num_state_inputs()) step.scores_from_batch = of.scores;
    step.takes_labels = TakesLabels(graph.nodes()[of.node].layer);
    if (of.node == graph.loss_node()) evaluated_ = k;
    if (!options_.training) continue;
    step.gradient = ViewOf(buffers_.gradient[of.scores], scores, memory);
    step.result = ViewOf(buffers_.loss_result[k], Shape({1}), memory);
    if (buffers_.loss_partial[k] == PassBuffers::kNone) continue;
    step.sum = step.gradient;
    step.gradient = ViewOf(buffers_.loss_partial[k], scores, memory);
  }
}

void Pass::PlaceShared(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const std::vector<int>& variables = schedule.ops[i].variables;
    for (size_t k = 0; k < variables.size(); ++k) {
      const int buffer = buffers_.shared[i][k];
      const MutableTensorView own = ViewOf(buffer, graph.variables()[variables[k]].shape, memory);
      steps_[i].own_gradients.push_back(own);
      if (buffer == PassBuffers::kNone) continue;
      steps_[buffers_.first_user[variables[k]]].shared.push_back({variables[k], own, nullptr});
    }
  }
}

absl::Status Pass::MakeOps(const ModelGraph& graph, const TowerSchedule& schedule,
                           const OpTable& ops, OpContext* context) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const ScheduledOp& op = schedule.ops[i];
    Step& step = steps_[i];
    step.layer = graph.nodes()[op.node].name;
    step.variable_ids = op.variables;
    OpOptions common{.batch = options_.batch, .training = options_.training};
    if (!options_.most_rows.empty() && !step.variable_ids.empty()) {
      common.most_rows = options_.most_rows[step.variable_ids[0]];
    }
    LOCKSTEP_ASSIGN_OR_RETURN(step.op, BuildOp(graph, schedule, op, common, ops, context));
    for (const int variable : step.variable_ids) {
      if (buffers_.first_user[variable] == static_cast<int>(i)) step.ready_ids.push_back(variable);
    }
    std::ranges::reverse(step.ready_ids);
    step.variables.resize(step.variable_ids.size());
    step.rows.resize(step.variable_ids.size());
    step.variable_gradients.resize(step.variable_ids.size());
  }
  for (LossStep& step : losses_) {
    LOCKSTEP_ASSIGN_OR_RETURN(step.loss, BuildLoss(graph, step.node, options_.batch, ops, context));
  }
  return absl::OkStatus();
}

absl::Status Pass::MakeSums(const OpTable& ops, OpContext* context) {
  const auto make = [&](const std::string& layer, const TensorView& of,
                        std::unique_ptr<PartialSum>* sum) -> absl::Status {
    absl::StatusOr<PartialSum> made = PartialSum::Create(of, ops, context);
    if (!made.ok()) return OfLayer(layer, made.status());
    *sum = std::make_unique<PartialSum>(*std::move(made));
    return absl::OkStatus();
  };
  for (Step& step : steps_) {
    for (Contribution& to : step.contributions) {
      LOCKSTEP_RETURN_IF_ERROR(make(step.layer, to.sum, &to.add));
    }
    for (SharedGradient& from : step.shared) {
      LOCKSTEP_RETURN_IF_ERROR(make(step.layer, from.term, &from.add));
    }
  }
  for (LossStep& step : losses_) {
    if (step.sum.data != nullptr) {
      LOCKSTEP_RETURN_IF_ERROR(make(step.layer, step.sum, &step.add_gradient));
    }
    if (step.result.data != nullptr) {
      LOCKSTEP_RETURN_IF_ERROR(make(step.layer, step.result, &step.add_result));
    }
  }
  return absl::OkStatus();
}

absl::Status Pass::Forward(Mode mode, std::span<const TensorView> inputs,
                           std::span<const TensorView> variables, std::span<const TableRows> rows,
                           const uint64_t* random_key, Stream* stream) {
  for (Step& step : steps_) {
    for (const BatchInput& in : step.batch_inputs) {
      step.inputs[in.input].data = inputs[in.from].data;
    }
    for (size_t i = 0; i < step.variable_ids.size(); ++i) {
      step.variables[i] = variables[step.variable_ids[i]];
      if (!rows.empty()) step.rows[i] = rows[step.variable_ids[i]];
    }
    step.forward_args = {mode, random_key, step.inputs, step.variables, step.output};
    if (!rows.empty()) step.forward_args.rows = step.rows;
    LOCKSTEP_RETURN_IF_ERROR(OfLayer(step.layer, step.op->Forward(step.forward_args, stream)));
  }
  for (LossStep& step : losses_) {
    if (step.scores_from_batch.has_value()) step.scores.data = inputs[*step.scores_from_batch].data;
  }
  return absl::OkStatus();
}

absl::Status Pass::Train(const TensorView& labels, const MutableTensorView& loss, Stream* stream) {
  for (LossStep& step : losses_) {
    LOCKSTEP_RETURN_IF_ERROR(OfLayer(step.layer, TrainOn(labels, loss, &step, stream)));
  }
  return absl::OkStatus();
}

absl::Status Pass::TrainOn(const TensorView& labels, const MutableTensorView& loss, LossStep* step,
                           Stream* stream) {
  const bool is_first = step->result.data == nullptr;
  const MutableTensorView& result = is_first ? loss : step->result;
  step->args = {step->scores, step->takes_labels ? labels : TensorView(), step->gradient, result};
  LOCKSTEP_RETURN_IF_ERROR(step->loss->Train(step->args, stream));
  if (!is_first) LOCKSTEP_RETURN_IF_ERROR(step->add_result->Enqueue(loss, step->result, stream));
  if (step->add_gradient == nullptr) return absl::OkStatus();
  return step->add_gradient->Enqueue(step->sum, step->gradient, stream);
}

absl::Status Pass::Evaluate(const TensorView& labels, const MutableTensorView& sums,
                            Stream* stream) {
  LossStep& step = losses_[evaluated_];
  step.args = {step.scores, labels, {}, sums};
  return OfLayer(step.layer, step.loss->Evaluate(step.args, stream));
}

absl::Status Pass::Predict(const MutableTensorView& predictions, Stream* stream) {
  LossStep& step = losses_[evaluated_];
  step.args = {step.scores, {}, {}, predictions};
  return OfLayer(step.layer, step.loss->Predict(step.args, stream));
}

absl::Status Pass::Backward(std::span<const MutableTensorView> gradients,
                            absl::FunctionRef<void(std::span<const int> variables)> complete,
                            Stream* stream) {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->output_gradient.data == nullptr) continue;
    for (size_t i = 0; i < step->variable_ids.size(); ++i) {
      const MutableTensorView& own = step->own_gradients[i];
      step->variable_gradients[i] = own.data != nullptr ? own : gradients[step->variable_ids[i]];
    }
    step->backward_args = {step->inputs,          step->variables,       step->output,
                           step->output_gradient, step->input_gradients, step->variable_gradients};
    LOCKSTEP_RETURN_IF_ERROR(OfLayer(step->layer, step->op->Backward(step->backward_args, stream)));
    LOCKSTEP_RETURN_IF_ERROR(OfLayer(step->layer, EnqueueSums(&*step, gradients, stream)));
    if (!step->ready_ids.empty()) complete(step->ready_ids);
  }
  return absl::OkStatus();
}

absl::Status Pass::EnqueueSums(Step* step, std::span<const MutableTensorView> gradients,
                               Stream* stream) {
  for (Contribution& contribution : step->contributions) {
    LOCKSTEP_RETURN_IF_ERROR(contribution.add->Enqueue(
        contribution.sum, step->input_gradients[contribution.input], stream));
  }
  for (SharedGradient& from : step->shared) {
    LOCKSTEP_RETURN_IF_ERROR(from.add->Enqueue(gradients[from.variable], from.term, stream));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
