#include "worker/tower/casts.h"

#include <map>
#include <utility>

namespace lockstep::worker {
namespace {

// The others have sums over many steps or rows of tables, and stay in float32.
bool TakesActivations(const LayerDef& layer) {
  switch (layer.kind_case()) {
    case LayerDef::kDense:
    case LayerDef::kConv2D:
    case LayerDef::kMaxPool:
    case LayerDef::kAveragePool:
    case LayerDef::kRelu:
    case LayerDef::kTanh:
    case LayerDef::kSigmoid:
    case LayerDef::kBatchNorm:
    case LayerDef::kDropout:
    case LayerDef::kAdd:
    case LayerDef::kConcatenate:
      return true;
    default:
      return false;
  }
}

// Appends the ops of a schedule to another one, with casts before those that need them.
class CastInserter {
 public:
  explicit CastInserter(TowerSchedule* schedule) : schedule_(*schedule) {}

  void Append(ScheduledOp op, DType type) {
    for (size_t input = 0; input < op.inputs.size(); ++input) {
      op.inputs[input] = As(type, op.inputs[input]);
    }
    schedule_.types[op.output] = type;
    schedule_.ops.push_back(std::move(op));
  }

  // The value in this type.
  ValueId As(DType type, ValueId value) {
    if (schedule_.types[value] == type) return value;
    const auto [found, is_new] = casts_.try_emplace(value, 0);
    if (is_new) found->second = AppendCast(type, value);
    return found->second;
  }

 private:
  ValueId AppendCast(DType type, ValueId value) {
    const auto cast = static_cast<ValueId>(schedule_.types.size());
    const int node = schedule_.shape_nodes[value];
    schedule_.types.push_back(type);
    schedule_.shape_nodes.push_back(node);
    schedule_.wants_gradient.push_back(schedule_.wants_gradient[value]);
    ScheduledOp op;
    op.node = node;
    op.is_cast = true;
    op.inputs = {value};
    op.input_nodes = {node};
    op.output = cast;
    schedule_.ops.push_back(std::move(op));
    return cast;
  }

  TowerSchedule& schedule_;
  std::map<ValueId, ValueId> casts_;  // there are two types
};

}  // namespace

TowerSchedule WithActivations(const ModelGraph& graph, TowerSchedule schedule, DType type) {
  if (type == DType::kFloat32) return schedule;
  std::vector<ScheduledOp> ops = std::move(schedule.ops);
  schedule.ops.clear();
  CastInserter inserter(&schedule);
  for (ScheduledOp& op : ops) {
    const bool takes = TakesActivations(graph.nodes()[op.node].layer);
    inserter.Append(std::move(op), takes ? type : DType::kFloat32);
  }
  for (ScheduledLoss& loss : schedule.losses) {
    loss.scores = inserter.As(DType::kFloat32, loss.scores);
  }
  return schedule;
}

}  // namespace lockstep::worker
