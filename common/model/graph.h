// The model as a graph with every shape inferred: what the chief checks, a ps initialises and a
// worker computes. No arithmetic here. Shapes never include the batch dimension.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/model.pb.h"
#include "proto/tensor.pb.h"

namespace lockstep {

// A variable that a layer needs, before it is placed on a shard.
struct ModelVariable {
  std::string name;  // "<layer>/<kind>"
  Shape shape;
  DType dtype = DType::kFloat32;
  // False: a statistic; workers push its new value and the ps averages.
  bool trainable = true;
  Initializer initializer;
  // A table that is looked up: a step reads few of its rows, and its gradient has only those.
  bool sparse = false;
  // Keeps its initial value: there is no gradient for it, and no new value of a statistic.
  bool frozen = false;
};

struct ModelNode {
  std::string name;
  LayerDef layer;  // defaults filled in: kernel and strides have two entries, initializers are set
  std::vector<int> inputs;     // indices of nodes, all lower than this one's
  std::vector<int> variables;  // indices into ModelGraph::variables(), in the order that the
                               // layer's comment in model.proto lists them; another layer's, too
  Shape output;
};

// Immutable after Build; thread-safe.
class ModelGraph {
 public:
  // INVALID_ARGUMENT naming the layer, what was expected and what was got: unknown input, duplicate
  // or malformed name, shapes that do not fit, no loss, losses that need different labels, a layer
  // or a state input that nobody uses, a lookup of what are not columns of the example.
  static absl::StatusOr<ModelGraph> Build(const ModelDef& def);

  const std::string& name() const { return name_; }
  // Node 0 is the input (its layer is empty); the order is that of execution.
  const std::vector<ModelNode>& nodes() const { return nodes_; }
  // In the order of first use by the forward pass. The last one is always the statistic
  // kLossVariable of shape [1]: the mean training loss of a step, pushed with the gradients.
  const std::vector<ModelVariable>& variables() const { return variables_; }
  int loss_variable() const { return static_cast<int>(variables_.size()) - 1; }
  // The loss layers, ascending. What is trained is their sum.
  const std::vector<int>& loss_nodes() const { return loss_nodes_; }
  // The loss that is evaluated: the first one that takes the data's labels, or else the first. Its
  // single input are the scores (softmax), the logits (sigmoid) or the outputs (L2).
  int loss_node() const { return loss_node_; }
  // Whether a loss takes the data's labels. Those that do take the same ones.
  bool uses_labels() const;
  // Whether a loss depends on the node.
  bool IsReached(int node) const { return is_reached_[node]; }
  // The graph that trains some of its losses, nodes and variables numbered as in this one. All
  // variables but those for which `trains` is true, and the training loss, are frozen.
  ModelGraph ForLosses(std::vector<int> loss_nodes,
                       absl::FunctionRef<bool(int variable)> trains) const;
  // The graph that predicts the output of a layer other than a loss: a regression that is compared
  // with no labels. Nodes and variables are numbered as in this one.
  ModelGraph ForLayer(int node) const;

  // Of the loss that is evaluated.
  bool is_classifier() const;
  // Classes of a classifier; number of outputs of a regression.
  int64_t num_outputs() const;
  // The time steps of a classifier of sequences; else 1.
  int64_t labels_per_example() const;
  const Shape& input_shape() const { return nodes_[0].output; }
  // Nodes 1 to num_state_inputs() are the model's state inputs, in its order. Their layers are
  // empty.
  int num_state_inputs() const { return num_state_inputs_; }

  static constexpr char kLossVariable[] = "train/loss";

 private:
  void SetLosses(std::vector<int> loss_nodes);
  // Returns its number.
  int Append(ModelNode node);

  std::string name_;
  std::vector<ModelNode> nodes_;
  std::vector<ModelVariable> variables_;
  std::vector<int> loss_nodes_;
  int loss_node_ = 0;
  bool has_targets_ = true;  // false: nothing is compared with the loss that is evaluated
  int num_state_inputs_ = 0;
  std::vector<bool> is_reached_;  // by node
};

}  // namespace lockstep
