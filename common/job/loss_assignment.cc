#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/config/rule.h"
#include "common/job/loss_checks.h"

namespace lockstep {
namespace {

std::string Field(const LossDef& loss, absl::string_view field) {
  return absl::StrCat("losses \"", loss.name(), "\": ", field);
}

// "fc" of "fc/kernel".
absl::string_view LayerOf(const ModelVariable& variable) {
  return absl::string_view(variable.name).substr(0, variable.name.find('/'));
}

bool Trains(const LossDef& loss, const ModelVariable& variable) {
  return std::ranges::any_of(loss.trains(), [&](const std::string& prefix) {
    return absl::StartsWith(LayerOf(variable), prefix);
  });
}

bool IsTrained(const ModelVariable& variable) {
  return !variable.frozen && variable.name != ModelGraph::kLossVariable;
}

absl::StatusOr<int> FindLoss(const LossDef& loss, const std::string& layer,
                             const ModelGraph& graph) {
  std::vector<std::string> known;
  for (const int node : graph.loss_nodes()) {
    if (graph.nodes()[node].name == layer) return node;
    known.push_back(graph.nodes()[node].name);
  }
  const std::string nearest = Nearest(layer, known);
  return Broken(
      Field(loss, "loss"),
      absl::StrCat("the model has no loss layer \"", absl::CHexEscape(layer.substr(0, 100)), "\"",
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")),
      "name a layer such as sigmoid_cross_entropy");
}

// Each loss of the model is trained by somebody.
absl::Status CheckAllNamed(const JobDef& job, const ModelGraph& graph) {
  for (const int node : graph.loss_nodes()) {
    const std::string& name = graph.nodes()[node].name;
    const bool is_named = std::ranges::any_of(job.losses(), [&](const LossDef& loss) {
      return std::ranges::find(loss.loss(), name) != loss.loss().end();
    });
    if (is_named) continue;
    return Broken("losses", absl::StrCat("no loss names the model's \"", name, "\""),
                  absl::StrCat("write loss: \"", name, "\" in one of them, or remove the layer"));
  }
  return absl::OkStatus();
}

// Variables that a loss trains are used by layers that it depends on.
absl::Status CheckReached(const LossDef& loss, const ModelGraph& graph,
                          const std::vector<int>& variables) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int> nodes, LossNodesOf(loss, graph));
  const ModelGraph own = graph.ForLosses(std::move(nodes), [](int) { return true; });
  std::vector<bool> is_used(graph.variables().size());
  for (size_t node = 0; node < own.nodes().size(); ++node) {
    if (!own.IsReached(static_cast<int>(node))) continue;
    for (const int variable : own.nodes()[node].variables) is_used[variable] = true;
  }
  for (const int variable : variables) {
    if (is_used[variable]) continue;
    return Broken(
        Field(loss, "trains"),
        absl::StrCat("its loss does not depend on variable ", graph.variables()[variable].name),
        "let another loss train it, or freeze the layer");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int>> LossNodesOf(const LossDef& loss, const ModelGraph& graph) {
  std::vector<int> nodes;
  for (const std::string& layer : loss.loss()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int node, FindLoss(loss, layer, graph));
    if (std::ranges::find(nodes, node) != nodes.end()) {
      return Broken(Field(loss, "loss"), absl::StrCat("\"", layer, "\" comes twice"),
                    "name each layer once");
    }
    nodes.push_back(node);
  }
  std::ranges::sort(nodes);
  return nodes;
}

absl::StatusOr<std::vector<uint32_t>> AssignLosses(const JobDef& job, const ModelGraph& graph) {
  std::vector<uint32_t> assigned(graph.variables().size());
  if (job.losses().empty()) return assigned;
  for (int k = 0; k < job.losses_size(); ++k) {
    const LossDef& loss = job.losses(k);
    std::vector<int> own;
    for (size_t i = 0; i < assigned.size(); ++i) {
      const ModelVariable& variable = graph.variables()[i];
      if (!IsTrained(variable) || !Trains(loss, variable)) continue;
      if (assigned[i] != 0) {
        return Broken(Field(loss, "trains"),
                      absl::StrCat("variable ", variable.name, " is already trained by \"",
                                   job.losses(static_cast<int>(assigned[i]) - 1).name(), "\""),
                      "let one loss train each variable");
      }
      assigned[i] = static_cast<uint32_t>(k) + 1;
      own.push_back(static_cast<int>(i));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckReached(loss, graph, own));
    const bool trains = std::ranges::any_of(
        own, [&](int variable) { return graph.variables()[variable].trainable; });
    if (trains) continue;
    return Broken(Field(loss, "trains"), "it trains no variable of the model",
                  "write how the names of the layers begin that it trains");
  }
  for (size_t i = 0; i < assigned.size(); ++i) {
    if (assigned[i] != 0 || !IsTrained(graph.variables()[i])) continue;
    return Broken("losses", absl::StrCat("no loss trains variable ", graph.variables()[i].name),
                  "add the beginning of its layer's name to trains of one, or freeze the layer");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckAllNamed(job, graph));
  return assigned;
}

}  // namespace lockstep
