#include "worker/tower/schedule.h"

#include <numeric>

#include "common/model/loss_rules.h"

namespace lockstep::worker {
namespace {

bool CanFoldRelu(const LayerDef& layer) {
  return layer.has_dense() || layer.has_conv2d() || layer.has_batch_norm();
}

// The only reader of each node, or -1 where there are none or several.
std::vector<int> OnlyReaders(const ModelGraph& graph) {
  const std::vector<ModelNode>& nodes = graph.nodes();
  std::vector<int> count(nodes.size());
  std::vector<int> reader(nodes.size(), -1);
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    if (!graph.IsReached(node)) continue;
    for (int input : nodes[node].inputs) {
      ++count[input];
      reader[input] = node;
    }
  }
  for (size_t node = 0; node < nodes.size(); ++node) {
    if (count[node] != 1) reader[node] = -1;
  }
  return reader;
}

}  // namespace

TowerSchedule MakeTowerSchedule(const ModelGraph& graph) {
  const std::vector<ModelNode>& nodes = graph.nodes();
  const std::vector<int> only_reader = OnlyReaders(graph);
  std::vector<bool> folded(nodes.size());
  std::vector<ValueId> value(nodes.size());
  TowerSchedule schedule;
  schedule.wants_gradient.assign(nodes.size(), false);
  schedule.types.assign(nodes.size(), DType::kFloat32);
  schedule.shape_nodes.resize(nodes.size());
  std::iota(schedule.shape_nodes.begin(), schedule.shape_nodes.end(), 0);
  const int first_layer = 1 + graph.num_state_inputs();
  for (int node = 1; node < first_layer; ++node) value[node] = node;
  for (int node = first_layer; node < static_cast<int>(nodes.size()); ++node) {
    const ModelNode& layer = nodes[node];
    if (folded[node] || !graph.IsReached(node)) continue;
    if (IsLoss(layer.layer)) {
      schedule.losses.push_back({node, value[layer.inputs[0]], layer.inputs[0]});
      continue;
    }
    if (layer.layer.has_flatten()) {
      value[node] = value[layer.inputs[0]];
      continue;
    }
    ScheduledOp op;
    op.node = node;
    op.variables = layer.variables;
    op.input_nodes = layer.inputs;
    op.output = node;
    const int reader = only_reader[node];
    if (CanFoldRelu(layer.layer) && reader >= 0 && nodes[reader].layer.has_relu()) {
      op.relu = true;
      op.output = reader;
      folded[reader] = true;
    }
    value[node] = value[op.output] = op.output;
    bool wants_gradient = false;
    for (int variable : layer.variables) {
      const ModelVariable& own = graph.variables()[variable];
      wants_gradient = wants_gradient || (own.trainable && !own.frozen);
    }
    for (int input : layer.inputs) {
      op.inputs.push_back(value[input]);
      wants_gradient = wants_gradient || schedule.wants_gradient[value[input]];
    }
    schedule.wants_gradient[op.output] = wants_gradient;
    schedule.ops.push_back(std::move(op));
  }
  return schedule;
}

}  // namespace lockstep::worker
