#include "worker/tower/pass_buffers.h"

#include <algorithm>

namespace lockstep::worker {

PassBuffers::PassBuffers(const ModelGraph& graph, const TowerSchedule& schedule,
                         const PassOptions& options)
    : value(schedule.types.size(), kNone),
      gradient(schedule.types.size(), kNone),
      partial(schedule.ops.size()),
      shared(schedule.ops.size()),
      first_user(graph.variables().size(), kNone) {
  const int end = static_cast<int>(schedule.ops.size());
  const auto add = [&](ValueId id, int first, int last) {
    const Shape& shape = graph.nodes()[schedule.shape_nodes[id]].output;
    return Add(options.batch * shape.num_elements(), schedule.types[id], first, last);
  };
  for (int i = 0; i < end; ++i) {
    const ScheduledOp& op = schedule.ops[i];
    value[op.output] = add(op.output, i, options.training ? 2 * end - i : i);
    for (ValueId input : op.inputs) Extend(value[input], i);
  }
  for (const ScheduledLoss& loss : schedule.losses) Extend(value[loss.scores], end);
  if (!options.training) return;

  AddLosses(graph, schedule, options.batch);
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
  AddShared(graph, schedule);
}

void PassBuffers::AddLosses(const ModelGraph& graph, const TowerSchedule& schedule, int64_t batch) {
  const int end = static_cast<int>(schedule.ops.size());
  for (const ScheduledLoss& loss : schedule.losses) {
    loss_result.push_back(loss_result.empty() ? kNone : Add(1, DType::kFloat32, end, end));
    loss_partial.push_back(kNone);
    if (!schedule.wants_gradient[loss.scores]) continue;
    const bool is_first = gradient[loss.scores] == kNone;
    const Shape& shape = graph.nodes()[loss.scores_node].output;
    const int buffer = Add(batch * shape.num_elements(), DType::kFloat32, end, end);
    (is_first ? gradient[loss.scores] : loss_partial.back()) = buffer;
  }
}

void PassBuffers::AddShared(const ModelGraph& graph, const TowerSchedule& schedule) {
  const int end = static_cast<int>(schedule.ops.size());
  for (int i = 0; i < end; ++i) {
    for (const int variable : schedule.ops[i].variables) {
      shared[i].push_back(kNone);
      const ModelVariable& own = graph.variables()[variable];
      if (own.frozen) continue;
      int& first = first_user[variable];
      if (first == kNone) {
        first = i;
      } else {
        shared[i].back() =
            Add(own.shape.num_elements(), DType::kFloat32, 2 * end - i, 2 * end - first);
      }
    }
  }
}

int PassBuffers::Add(size_t elements, DType type, int first, int last) {
  lives.push_back({elements * SizeOf(type), first, last});
  return static_cast<int>(lives.size()) - 1;
}

void PassBuffers::Extend(int buffer, int time) {
  if (buffer != kNone) lives[buffer].last = std::max(lives[buffer].last, time);
}

}  // namespace lockstep::worker
