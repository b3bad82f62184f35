#include "common/model/graph.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/annotate.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/model/index_columns.h"
#include "common/model/layer_rules.h"

namespace lockstep {
namespace {

constexpr char kInput[] = "input";
constexpr size_t kMaxNameLength = 100;

// Names of variables that no layer owns begin with these: train/loss, optimizer/beta1_power.
constexpr absl::string_view kReserved[] = {kInput, "train", "optimizer"};

// `layer "fc" (dense)`; by its place in the file when it has no name.
std::string Describe(const LayerDef& layer, int index) {
  std::string text = layer.name().empty() ? absl::StrCat("layer ", index + 1, " of the file")
                                          : absl::StrCat("layer \"", layer.name(), "\"");
  if (!KindName(layer).empty()) absl::StrAppend(&text, " (", KindName(layer), ")");
  return text;
}

absl::Status CheckName(absl::string_view name) {
  bool sound = !name.empty() && name.size() <= kMaxNameLength;
  for (char c : name) sound = sound && (absl::ascii_isalnum(c) || c == '_');
  if (!sound) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: expected 1 to ", kMaxNameLength, " letters, digits or '_', got \"",
                     absl::CHexEscape(name.substr(0, kMaxNameLength)), "\". Remedy: write name: \"",
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
  absl::StatusOr<Shape> shape =
      Shape::Create(absl::MakeConstSpan(def.input_shape().data(), def.input_shape_size()));
  if (!shape.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("input_shape: ", shape.status().message(),
                                                   ". Remedy: write the shape of one example"));
  }
  return shape;
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

  absl::Status AddLayer(const LayerDef& layer) {
    LOCKSTEP_RETURN_IF_ERROR(CheckName(layer.name()));
    ModelNode node;
    node.name = layer.name();
    node.layer = layer;
    LOCKSTEP_ASSIGN_OR_RETURN(node.inputs, FindInputs(layer));
    std::vector<Shape> shapes;
    for (int input : node.inputs) shapes.push_back(nodes[input].output);
    LOCKSTEP_ASSIGN_OR_RETURN(InferredLayer inferred, InferLayer(node.layer, shapes));
    if (TableRows(layer).has_value() && !ColumnsOfExample(nodes, node.inputs[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs: expected row indices, columns of the example as it is, got \"",
                       nodes[node.inputs[0]].name, "\", which is computed. Remedy: take \"", kInput,
                       "\" or a columns layer of it"));
    }
    if (layer.frozen() && inferred.variables.empty()) {
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
      if (loss_node != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected one loss, got a second one besides \"", nodes[loss_node].name,
                         "\". Remedy: remove one of the two"));
      }
      loss_node = static_cast<int>(nodes.size());
    }
    for (int input : node.inputs) used_[input] = true;
    return Append(std::move(node));
  }

  absl::Status CheckWhole() const {
    if (loss_node == 0) {
      return absl::InvalidArgumentError(
          "layers: there is no loss. Remedy: end with softmax_cross_entropy (classes) or l2_loss "
          "(numbers)");
    }
    for (size_t node = 0; node < nodes.size(); ++node) {
      if (used_[node] || static_cast<int>(node) == loss_node) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(node == 0 ? "" : "layer ", "\"", nodes[node].name,
                       "\": no layer takes its output. Remedy: name it in the inputs of another ",
                       "layer, or remove it"));
    }
    return absl::OkStatus();
  }

  std::vector<ModelNode> nodes;
  std::vector<ModelVariable> variables;
  int loss_node = 0;

 private:
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
      LOCKSTEP_ASSIGN_OR_RETURN(const int input, Find(name));
      inputs.push_back(input);
    }
    if (inputs.empty()) inputs.push_back(static_cast<int>(nodes.size()) - 1);
    for (int input : inputs) {
      if (input != 0 && input == loss_node) {
        return absl::InvalidArgumentError(
            absl::StrCat("inputs: \"", nodes[input].name,
                         "\" is the loss, which ends the graph. Remedy: take the layer before it"));
      }
    }
    return inputs;
  }

  absl::StatusOr<int> Find(const std::string& name) const {
    if (const auto found = index_.find(name); found != index_.end()) return found->second;
    std::vector<std::string> known = {kInput};
    for (const LayerDef& layer : def_.layers()) {
      if (layer.name() == name) {
        return absl::InvalidArgumentError(
            absl::StrCat("inputs: \"", name, "\" does not stand ahead of it in the file. Remedy: ",
                         "write a layer after the layers whose outputs it takes"));
      }
      known.push_back(layer.name());
    }
    const std::string nearest = Nearest(name, known);
    return absl::InvalidArgumentError(
        absl::StrCat("inputs: there is no layer \"", name, "\"",
                     nearest.empty() ? "." : absl::StrCat("; did you mean \"", nearest, "\"?"),
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
  for (int index = 0; index < def.layers_size(); ++index) {
    const absl::Status added = builder.AddLayer(def.layers(index));
    if (!added.ok()) return Annotate(added, Describe(def.layers(index), index));
  }
  LOCKSTEP_RETURN_IF_ERROR(builder.CheckWhole());
  ModelGraph graph;
  graph.name_ = def.name();
  graph.nodes_ = std::move(builder.nodes);
  graph.variables_ = std::move(builder.variables);
  graph.loss_node_ = builder.loss_node;
  graph.variables_.push_back({kLossVariable, Shape({1}), DType::kFloat32, /*trainable=*/false, {}});
  return graph;
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
