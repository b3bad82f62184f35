#include "worker/tower/pass_buffers.h"

#include <algorithm>

namespace lockstep::worker {

PassBuffers::PassBuffers(const ModelGraph& graph, const Schedule& schedule,
                         const PassOptions& options)
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

void PassBuffers::Extend(int buffer, int time) {
  if (buffer != kNone) lives[buffer].last = std::max(lives[buffer].last, time);
}

}  // namespace lockstep::worker
