#include "common/job/loss_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckTrained(const ModelGraph& graph) {
  const bool trains = std::ranges::any_of(graph.variables(), [](const ModelVariable& variable) {
    return variable.trainable && !variable.frozen;
  });
  if (trains) return absl::OkStatus();
  return Broken("model", "it has nothing to train: no layer has variables that are not frozen",
                "add a layer with variables, such as dense, or remove frozen: true from one");
}

// Without labels nothing can be evaluated.
absl::Status CheckLabels(const JobDef& job, const ModelGraph& graph) {
  if (graph.uses_labels()) return absl::OkStatus();
  if (job.has_local_sync()) {
    return Broken("local_sync", "it loads examples with labels, and the model takes no labels",
                  "remove it, or end the model in a loss that takes the labels of the data");
  }
  if (job.evaluation().every_steps() > 0) {
    return Broken("evaluation.every_steps", "no loss of the model takes labels to evaluate with",
                  "remove it");
  }
  if (job.evaluation().not_at_end()) return absl::OkStatus();
  return Broken("evaluation", "there is a test set, and no loss of the model takes its labels",
                "remove the test set, or write evaluation { not_at_end: true }");
}

}  // namespace

absl::Status CheckLosses(const JobDef& job, const ModelGraph& graph) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTrained(graph));
  if (graph.loss_nodes().size() > 1 && job.losses().empty()) {
    return Broken(
        "losses",
        absl::StrCat("the model has several losses, \"", graph.nodes()[graph.loss_nodes()[0]].name,
                     "\" and \"", graph.nodes()[graph.loss_nodes()[1]].name,
                     "\", and the job does not say what each trains"),
        "write losses { ... } for each, or remove layers");
  }
  return CheckLabels(job, graph);
}

}  // namespace lockstep
