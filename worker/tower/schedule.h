// In which order the ops of a model run, what each reads and writes, and which gradients anybody
// needs. Depends on the graph alone: no memory, no device.
#pragma once

#include <vector>

#include "common/model/graph.h"
#include "common/tensor/dtype.h"

namespace lockstep::worker {

// An index of a node: the tensor that the node's layer puts out. A flatten has none of its own: it
// is another view of its input's. From the number of nodes on: a cast of another value.
using ValueId = int;

struct ScheduledOp {
  int node = 0;                // of a cast: whose value it casts
  bool is_cast = false;        // instead of the node's layer
  std::vector<int> variables;  // of the layer, as indices into ModelGraph::variables()
  // A relu that nobody but it reads was folded in: `output` is then the relu's value.
  bool relu = false;
  std::vector<ValueId> inputs;  // in the order of the layer's
  // Node of each input whose shape the op sees: a flatten where `inputs` names what it flattens.
  std::vector<int> input_nodes;
  ValueId output = 0;
};

struct ScheduledLoss {
  int node = 0;
  ValueId scores = 0;   // what the loss reads
  int scores_node = 0;  // the node whose shape it sees
};

// Of what the losses of the graph depend on.
struct TowerSchedule {
  // In the order of execution. Node numbers ascend, so a backward pass in the opposite order
  // finishes variables from the last to the first.
  std::vector<ScheduledOp> ops;
  std::vector<ScheduledLoss> losses;  // in the order of the layers
  // By value: whether a variable that is trained comes before it, so that its gradient is needed.
  std::vector<bool> wants_gradient;
  // By value: the type of its elements and of its gradient's, and a node that has its shape.
  std::vector<DType> types;
  std::vector<int> shape_nodes;
};

// All in float32.
TowerSchedule MakeTowerSchedule(const ModelGraph& graph);

}  // namespace lockstep::worker
