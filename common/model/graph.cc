#include "common/model/graph.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/annotate.h"
#include "common/base/limits.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/model/index_columns.h"
#include "common/model/layer_rules.h"
#include "common/model/loss_rules.h"
#include "common/model/size_rules.h"

namespace lockstep {
namespace {

constexpr char kInput[] = "input";

// Names of variables that no layer owns begin with these: train/loss, optimizer/beta1_power.
constexpr absl::string_view kReserved[] = {kInput, "train", "optimizer"};

// Of a file, before it is known to be sound.
std::string Shown(absl::string_view name) {
  return absl::CHexEscape(name.substr(0, limits::kMaxNameBytes));
}

// `layer "fc" (dense)`; by its place in the file when it has no name.
std::string Describe(const LayerDef& layer, int index) {
  std::string text = layer.name().empty() ? absl::StrCat("layer ", index + 1, " of the file")
                                          : absl::StrCat("layer \"", Shown(layer.name()), "\"");
  if (!KindName(layer).empty()) absl::StrAppend(&text, " (", KindName(layer), ")");
  return text;
}

absl::Status CheckName(absl::string_view name) {
  bool sound = !name.empty() && name.size() <= limits::kMaxNameBytes;
  for (char c : name) sound = sound && (absl::ascii_isalnum(c) || c == '_');
  if (!sound) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: expected 1 to ", limits::kMaxNameBytes,
                     " letters, digits or '_', got \"", Shown(name), "\". Remedy: write name: \"",
                     name.empty() ? "hidden1" : "conv_1", "\" or the like"));
  }
  for (absl::string_view reserved : kReserved) {
    if (name == reserved) {
      return absl::InvalidArgumentError(
          absl::StrCat("name: \"", name, "\" is reserved. Remedy: choose another name"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> CheckInputShape(const ModelDef& def) {
  const auto got = [&] { return absl::StrCat("[", absl::StrJoin(def.input_shape(), ","), "]"); };
  bool positive = !def.input_shape().empty();
  for (int64_t extent : def.input_shape()) positive = positive && extent >= 1;
  if (!positive) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input_shape: expected the shape of one example, every extent at least 1, ", "got ", got(),
        ". Remedy: write [28, 28, 1] for images of 28x28 grey pixels, ", "[30] for 30 numbers"));
  }
  // Together with the batch dimension it must be a shape too.
  if (def.input_shape_size() >= Shape::kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("input_shape: expected at most ",
                                                   Shape::kMaxRank - 1, " dimensions, got ", got(),
                                                   ". Remedy: write the shape of one example"));
  }
  return SizedShape("input_shape: an example",
                    absl::MakeConstSpan(def.input_shape().data(), def.input_shape_size()));
}

// The parts of a graph while its layers are added one after another.
class Builder {
 public:
  explicit Builder(const ModelDef& def) : def_(def) {}

  absl::Status AddInput() {
    ModelNode input;
    input.name = kInput;
    LOCKSTEP_ASSIGN_OR_RETURN(input.output, CheckInputShape(def_));
    return Append(std::move(input));
  }

  absl::Status AddStateInput(const StateInput& state) {
    LOCKSTEP_RETURN_IF_ERROR(CheckName(state.name()));
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t units, Positive("units", state.units()));
    ModelNode node;
    node.name = state.name();
    LOCKSTEP_ASSIGN_OR_RETURN(node.output, SizedShape("the state", {units}));
    return Append(std::move(node));
  }

  absl::Status AddLayer(const LayerDef& layer) {
    LOCKSTEP_RETURN_IF_ERROR(CheckName(layer.name()));
    ModelNode node;
    node.name = layer.name();
    node.layer = layer;
    LOCKSTEP_ASSIGN_OR_RETURN(node.inputs, FindInputs(layer));
    std::vector<Shape> shapes;
    for (int input : node.inputs) shapes.push_back(nodes[input].output);
    LOCKSTEP_ASSIGN_OR_RETURN(InferredLayer inferred, InferLayer(node.layer, shapes));
    if (!layer.variables_of().empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(node.variables, ShareVariables(layer, inferred));
      inferred.variables.clear();
    }
    if (TableRows(layer).has_value() && !ColumnsOfExample(nodes, node.inputs[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs: expected row indices, columns of the example as it is, got \"",
                       nodes[node.inputs[0]].name, "\", which is computed. Remedy: take \"", kInput,
                       "\" or a columns layer of it"));
    }
    if (layer.frozen() && node.variables.empty() && inferred.variables.empty()) {
      return absl::InvalidArgumentError(
          "frozen: this layer has no variables that could change. Remedy: remove it");
    }
    node.output = std::move(inferred.output);
    for (LayerVariable& variable : inferred.variables) {
      node.variables.push_back(static_cast<int>(variables.size()));
      variables.push_back({absl::StrCat(node.name, "/", variable.kind), std::move(variable.shape),
                           DType::kFloat32, variable.trainable, std::move(variable.initializer),
                           variable.sparse, layer.frozen()});
    }
    if (IsLoss(layer)) {
      LOCKSTEP_RETURN_IF_ERROR(CheckLabels(node));
      loss_nodes.push_back(static_cast<int>(nodes.size()));
    }
    for (int input : node.inputs) used_[input] = true;
    return Append(std::move(node));
  }

  absl::Status CheckWhole() const {
    if (loss_nodes.empty()) {
      return absl::InvalidArgumentError(
          "layers: there is no loss. Remedy: end with softmax_cross_entropy (classes) or l2_loss "
          "(numbers)");
    }
    for (size_t node = 0; node < nodes.size(); ++node) {
      if (used_[node] || IsLoss(nodes[node].layer)) continue;
      if (IsStateInput(node)) {
        return absl::InvalidArgumentError(
            absl::StrCat("state_inputs: no layer takes \"", nodes[node].name,
                         "\". Remedy: name it in the inputs of an lstm or a gru, or remove it"));
      }
      return absl::InvalidArgumentError(
          absl::StrCat(node == 0 ? "" : "layer ", "\"", nodes[node].name,
                       "\": no layer takes its output. Remedy: name it in the inputs of another ",
                       "layer, or remove it"));
    }
    return absl::OkStatus();
  }

  std::vector<ModelNode> nodes;
  std::vector<ModelVariable> variables;
  std::vector<int> loss_nodes;

 private:
  bool IsStateInput(size_t node) const {
    return node >= 1 && node <= static_cast<size_t>(def_.state_inputs_size());
  }

  // The variables of another layer, which `layer`, were it alone, would have alike.
  absl::StatusOr<std::vector<int>> ShareVariables(const LayerDef& layer,
                                                  const InferredLayer& inferred) const {
    const std::string& name = layer.variables_of();
    LOCKSTEP_ASSIGN_OR_RETURN(const int owner, Find("variables_of", name));
    if (layer.frozen()) {
      return absl::InvalidArgumentError(
          absl::StrCat("frozen: its variables are those of \"", name,
                       "\". Remedy: write frozen at that layer, or not at all"));
    }
    const std::vector<int>& shared = nodes[owner].variables;
    bool fits = layer.kind_case() == nodes[owner].layer.kind_case() && !shared.empty() &&
                nodes[owner].layer.variables_of().empty() &&
                inferred.variables.size() == shared.size();
    for (size_t i = 0; fits && i < shared.size(); ++i) {
      fits = inferred.variables[i].shape == variables[shared[i]].shape;
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variables_of: expected a ", KindName(layer), " layer with ", inferred.variables.size(),
          " variables of its own, which its inputs fit, got \"", name, "\" (",
          KindName(nodes[owner].layer), ") with ", DescribeVariables(nodes[owner]),
          ". Remedy: name a layer of the same kind with inputs of the same shape"));
    }
    for (const int variable : shared) {
      if (variables[variable].trainable && !variables[variable].sparse) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("variables_of: ", variables[variable].name, " is a ",
                       variables[variable].sparse ? "table" : "statistic",
                       ", which layers cannot share. Remedy: remove variables_of"));
    }
    return shared;
  }

  std::string DescribeVariables(const ModelNode& node) const {
    std::vector<std::string> shapes;
    for (const int variable : node.variables) {
      shapes.push_back(
          absl::StrCat(variables[variable].name, " ", variables[variable].shape.ToString()));
    }
    return shapes.empty() ? "none" : absl::StrJoin(shapes, ", ");
  }

  // An example has one kind of labels.
  absl::Status CheckLabels(const ModelNode& loss) const {
    if (!TakesLabels(loss.layer)) return absl::OkStatus();
    for (const int other : loss_nodes) {
      if (!TakesLabels(nodes[other].layer)) continue;
      const Shape& theirs = nodes[nodes[other].inputs[0]].output;
      const Shape& own = nodes[loss.inputs[0]].output;
      if (nodes[other].layer.has_softmax_cross_entropy() ==
              loss.layer.has_softmax_cross_entropy() &&
          theirs == own) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "it needs other labels than \"", nodes[other].name, "\": ", KindName(loss.layer), " of ",
          own.ToString(), " against ", KindName(nodes[other].layer), " of ", theirs.ToString(),
          ". Remedy: end the model in losses of the same labels, or give sigmoid_cross_entropy a "
          "constant target"));
    }
    return absl::OkStatus();
  }

  absl::Status Append(ModelNode node) {
    if (!index_.try_emplace(node.name, static_cast<int>(nodes.size())).second) {
      return absl::InvalidArgumentError(
          "name: another layer has it already. Remedy: give each layer a name of its own");
    }
    nodes.push_back(std::move(node));
    used_.push_back(false);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int>> FindInputs(const LayerDef& layer) const {
    std::vector<int> inputs;
    for (const std::string& name : layer.inputs()) {
      LOCKSTEP_ASSIGN_OR_RETURN(const int input, Find("inputs", name));
      inputs.push_back(input);
    }
    const size_t before = nodes.size() - 1;
    if (inputs.empty() && !layer.has_noise()) {
      inputs.push_back(IsStateInput(before) ? 0 : static_cast<int>(before));
    }
    for (int input : inputs) {
      if (IsLoss(nodes[input].layer)) {
        return absl::InvalidArgumentError(
            absl::StrCat("inputs: \"", nodes[input].name,
                         "\" is the loss, which ends the graph. Remedy: take the layer before it"));
      }
    }
    return inputs;
  }

  // `field` names it.
  absl::StatusOr<int> Find(absl::string_view field, const std::string& name) const {
    if (const auto found = index_.find(name); found != index_.end()) return found->second;
    std::vector<std::string> known = {kInput};
    for (const StateInput& state : def_.state_inputs()) known.push_back(state.name());
    for (const LayerDef& layer : def_.layers()) {
      if (layer.name() == name) {
        return absl::InvalidArgumentError(absl::StrCat(
            field, ": \"", Shown(name), "\" does not stand ahead of it in the file. Remedy: ",
            "write a layer after the layers that it names"));
      }
      known.push_back(layer.name());
    }
    const std::string nearest = Nearest(name, known);
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": there is no layer \"", Shown(name), "\"",
        nearest.empty() ? "." : absl::StrCat("; did you mean \"", Shown(nearest), "\"?"),
        " Remedy: name a layer that stands before it, or \"", kInput, "\""));
  }

  const ModelDef& def_;
  absl::flat_hash_map<std::string, int> index_;
  std::vector<bool> used_;
};

}  // namespace

absl::StatusOr<ModelGraph> ModelGraph::Build(const ModelDef& def) {
  Builder builder(def);
  LOCKSTEP_RETURN_IF_ERROR(builder.AddInput());
  for (int index = 0; index < def.state_inputs_size(); ++index) {
    const absl::Status added = builder.AddStateInput(def.state_inputs(index));
    if (!added.ok()) return Annotate(added, absl::StrCat("state_inputs[", index, "]"));
  }
  for (int index = 0; index < def.layers_size(); ++index) {
    const absl::Status added = builder.AddLayer(def.layers(index));
    if (!added.ok()) return Annotate(added, Describe(def.layers(index), index));
  }
  LOCKSTEP_RETURN_IF_ERROR(builder.CheckWhole());
  ModelGraph graph;
  graph.name_ = def.name();
  graph.nodes_ = std::move(builder.nodes);
  graph.variables_ = std::move(builder.variables);
  graph.SetLosses(std::move(builder.loss_nodes));
  graph.num_state_inputs_ = def.state_inputs_size();
  graph.variables_.push_back({kLossVariable, Shape({1}), DType::kFloat32, /*trainable=*/false, {}});
  return graph;
}

void ModelGraph::SetLosses(std::vector<int> loss_nodes) {
  loss_nodes_ = std::move(loss_nodes);
  const auto with_labels = std::ranges::find_if(
      loss_nodes_, [this](int node) { return TakesLabels(nodes_[node].layer); });
  loss_node_ = with_labels == loss_nodes_.end() ? loss_nodes_[0] : *with_labels;
  is_reached_.assign(nodes_.size(), false);
  for (const int node : loss_nodes_) is_reached_[node] = true;
  // Inputs come before the layers that take them.
  for (size_t node = nodes_.size(); node-- > 0;) {
    if (!is_reached_[node]) continue;
    for (const int input : nodes_[node].inputs) is_reached_[input] = true;
  }
}

ModelGraph ModelGraph::ForLosses(std::vector<int> loss_nodes,
                                 absl::FunctionRef<bool(int variable)> trains) const {
  ModelGraph graph = *this;
  graph.SetLosses(std::move(loss_nodes));
  for (int variable = 0; variable < graph.loss_variable(); ++variable) {
    ModelVariable& own = graph.variables_[variable];
    own.frozen = own.frozen || !trains(variable);
  }
  return graph;
}

int ModelGraph::Append(ModelNode node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

// An l2_loss predicts what it reads.
ModelGraph ModelGraph::ForLayer(int node) const {
  ModelGraph graph = *this;
  ModelNode flat{.name = absl::StrCat(nodes_[node].name, " (flat)"), .inputs = {node}};
  flat.layer.mutable_flatten();
  flat.output = Shape({nodes_[node].output.num_elements()});
  ModelNode end{.name = absl::StrCat(nodes_[node].name, " (output)")};
  end.inputs = {graph.Append(std::move(flat))};
  end.layer.mutable_l2_loss();
  graph.SetLosses({graph.Append(std::move(end))});
  graph.has_targets_ = false;
  return graph;
}

bool ModelGraph::uses_labels() const {
  return has_targets_ && TakesLabels(nodes_[loss_node_].layer);
}

bool ModelGraph::is_classifier() const {
  return nodes_[loss_node_].layer.has_softmax_cross_entropy();
}

int64_t ModelGraph::num_outputs() const {
  return nodes_[nodes_[loss_node_].inputs[0]].output.dims().back();
}

int64_t ModelGraph::labels_per_example() const {
  return nodes_[nodes_[loss_node_].inputs[0]].output.num_elements() / num_outputs();
}

}  // namespace lockstep
