#include "worker/tower/pass.h"

#include <algorithm>
#include <array>

#include "common/base/status_macros.h"
#include "worker/tower/memory_plan.h"
#include "worker/tower/op_builder.h"

namespace lockstep::worker {
namespace {

constexpr int kNone = -1;

Shape Batched(int64_t batch, const Shape& example) {
  std::vector<int64_t> dims = {batch};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(dims);
}

// Which buffers a pass needs and when. Op i of n runs forward at time i and backward at 2n - i, the
// loss at n.
struct Buffers {
  std::vector<BufferLife> lives;
  // Indices into lives, kNone where there is none.
  std::vector<int> value;                 // by ValueId
  std::vector<int> gradient;              // by ValueId
  std::vector<std::vector<int>> partial;  // by op and input: beside another gradient of the value

  Buffers(const ModelGraph& graph, const Schedule& schedule, const PassOptions& options)
      : value(graph.nodes().size(), kNone),
        gradient(graph.nodes().size(), kNone),
        partial(schedule.ops.size()) {
    const int end = static_cast<int>(schedule.ops.size());
    const auto add = [&](ValueId id, int first, int last) {
      const size_t elements = options.batch * graph.nodes()[id].output.num_elements();
      lives.push_back({elements * sizeof(float), first, last});
      return static_cast<int>(lives.size()) - 1;
    };
    for (int i = 0; i < end; ++i) {
      const ScheduledOp& op = schedule.ops[i];
      value[op.output] = add(op.output, i, options.training ? 2 * end - i : i);
      for (ValueId input : op.inputs) Extend(value[input], i);
    }
    Extend(value[schedule.scores], end);
    if (!options.training) return;

    if (schedule.wants_gradient[schedule.scores]) {
      gradient[schedule.scores] = add(schedule.scores, end, end);
    }
    for (int i = end - 1; i >= 0; --i) {
      const ScheduledOp& op = schedule.ops[i];
      const int now = 2 * end - i;
      Extend(gradient[op.output], now);
      for (ValueId input : op.inputs) {
        partial[i].push_back(kNone);
        if (!schedule.wants_gradient[input]) continue;
        if (gradient[input] == kNone) {
          gradient[input] = add(input, now, now);
        } else {
          Extend(gradient[input], now);
          partial[i].back() = add(input, now, now);
        }
      }
    }
  }

 private:
  void Extend(int buffer, int time) {
    if (buffer != kNone) lives[buffer].last = std::max(lives[buffer].last, time);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pass>> Pass::Create(const ModelGraph& graph,
                                                   const Schedule& schedule, const Device& device,
                                                   OpFactory& factory, const PassOptions& options) {
  std::unique_ptr<Pass> pass(new Pass(options, schedule.ops.size()));
  LOCKSTEP_RETURN_IF_ERROR(pass->PlaceBuffers(graph, schedule, device));
  LOCKSTEP_RETURN_IF_ERROR(pass->MakeOps(graph, schedule, factory));
  return pass;
}

absl::Status Pass::PlaceBuffers(const ModelGraph& graph, const Schedule& schedule,
                                const Device& device) {
  const Buffers buffers(graph, schedule, options_);
  const MemoryPlan plan = PlanMemory(buffers.lives);
  LOCKSTEP_ASSIGN_OR_RETURN(memory_, device.Allocate(plan.total));
  const auto view = [&](int buffer, int node) {
    return MutableTensorView{DType::kFloat32, Batched(options_.batch, graph.nodes()[node].output),
                             buffer == kNone ? nullptr : memory_.get() + plan.offsets[buffer]};
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const ScheduledOp& op = schedule.ops[i];
    Step& step = steps_[i];
    step.output = view(buffers.value[op.output], op.output);
    step.output_gradient = view(buffers.gradient[op.output], op.output);
    for (size_t input = 0; input < op.inputs.size(); ++input) {
      const ValueId from = op.inputs[input];
      const int node = op.input_nodes[input];
      step.inputs.push_back(view(buffers.value[from], node));
      if (from == 0) step.feature_inputs.push_back(input);
      if (!options_.training) continue;
      const int partial = buffers.partial[i][input];
      const MutableTensorView sum = view(buffers.gradient[from], node);
      step.input_gradients.push_back(partial == kNone ? sum : view(partial, node));
      if (partial != kNone) step.contributions.push_back({input, sum, nullptr});
    }
  }
  scores_ = view(buffers.value[schedule.scores], schedule.scores_node);
  scores_are_features_ = schedule.scores == 0;
  scores_gradient_ = view(buffers.gradient[schedule.scores], schedule.scores_node);
  return absl::OkStatus();
}

absl::Status Pass::MakeOps(const ModelGraph& graph, const Schedule& schedule, OpFactory& factory) {
  const OpOptions common{options_.batch, options_.training};
  for (size_t i = 0; i < steps_.size(); ++i) {
    const ScheduledOp& op = schedule.ops[i];
    Step& step = steps_[i];
    LOCKSTEP_ASSIGN_OR_RETURN(step.op, BuildOp(graph, schedule, op, common, factory));
    for (Contribution& contribution : step.contributions) {
      const int64_t elements = contribution.sum.num_elements() / options_.batch;
      LOCKSTEP_ASSIGN_OR_RETURN(contribution.add, factory.MakeAdd({common, elements}));
    }
    step.variable_ids = graph.nodes()[op.node].variables;
    if (!graph.nodes()[op.node].layer.frozen()) {
      step.ready_ids.assign(step.variable_ids.rbegin(), step.variable_ids.rend());
    }
    step.variables.resize(step.variable_ids.size());
    step.rows.resize(step.variable_ids.size());
    step.variable_gradients.resize(step.variable_ids.size());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(loss_, BuildLoss(graph, options_.batch, factory));
  return absl::OkStatus();
}

TensorView Pass::Forward(Mode mode, TensorView features, const VariableValues& variables,
                         uint64_t random_key) {
  const bool whole = variables.rows.empty();
  for (Step& step : steps_) {
    for (size_t input : step.feature_inputs) step.inputs[input].data = features.data;
    for (size_t i = 0; i < step.variable_ids.size(); ++i) {
      step.variables[i] = variables.views[step.variable_ids[i]];
      if (!whole) step.rows[i] = variables.rows[step.variable_ids[i]];
    }
    Op::ForwardArgs args{mode, random_key, step.inputs, step.variables, step.output};
    if (!whole) args.rows = step.rows;
    step.op->Forward(args);
  }
  if (scores_are_features_) scores_.data = features.data;
  return scores_;
}

void Pass::Backward(std::span<const MutableTensorView> gradients,
                    const std::function<void(std::span<const int> variables)>& ready) {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->output_gradient.data == nullptr) continue;
    for (size_t i = 0; i < step->variable_ids.size(); ++i) {
      step->variable_gradients[i] = gradients[step->variable_ids[i]];
    }
    step->op->Backward({step->inputs, step->variables, step->output, step->output_gradient,
                        step->input_gradients, step->variable_gradients});
    for (const Contribution& contribution : step->contributions) {
      const std::array<TensorView, 2> terms = {contribution.sum,
                                               step->input_gradients[contribution.input]};
      contribution.add->Forward({Mode::kTraining, 0, terms, {}, contribution.sum});
    }
    if (!step->ready_ids.empty()) ready(step->ready_ids);
  }
}

}  // namespace lockstep::worker
