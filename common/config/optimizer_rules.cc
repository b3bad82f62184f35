#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"
#include "common/optimizer_proto/custom_optimizer.h"

namespace lockstep {
namespace {

absl::Status CheckPiecewise(const LearningRate& rate) {
  const LearningRate::Piecewise& piecewise = rate.piecewise();
  if (rate.base() != 0) {
    return Broken("optimizer.learning_rate.base", "piecewise.values replace it", "remove it");
  }
  if (piecewise.values_size() != piecewise.boundaries_size() + 1) {
    return Broken("optimizer.learning_rate.piecewise.values",
                  absl::StrCat("expected one more than the ", piecewise.boundaries_size(),
                               " boundaries, got ", piecewise.values_size()),
                  "give a value for before, between and after the boundaries");
  }
  int64_t previous = -1;
  for (int64_t boundary : piecewise.boundaries()) {
    if (boundary <= previous) {
      return Broken("optimizer.learning_rate.piecewise.boundaries",
                    absl::StrCat("expected ascending steps from 0 on, got ", boundary,
                                 previous < 0 ? "" : absl::StrCat(" after ", previous)),
                    "sort them, each once");
    }
    previous = boundary;
  }
  return absl::OkStatus();
}

absl::Status CheckLearningRate(const LearningRate& rate) {
  if (rate.has_piecewise()) return CheckPiecewise(rate);
  if (rate.base() > 0 && std::isfinite(rate.base())) return absl::OkStatus();
  return OutOfRange("optimizer.learning_rate.base", "a positive number", rate.base());
}

absl::Status CheckAverages(const VariableAverages& averages) {
  absl::flat_hash_set<absl::string_view> names;
  for (const std::string& name : averages.only()) {
    if (names.insert(name).second) continue;
    return Broken("optimizer.variable_averages.only",
                  absl::StrCat("variable \"", name, "\" comes twice"), "name each variable once");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptimizer(const OptimizerDef& optimizer) {
  if (optimizer.kind_case() == OptimizerDef::KIND_NOT_SET) {
    return Broken("optimizer", "it has no kind",
                  "write sgd {}, momentum {...}, adagrad {}, adadelta {}, rmsprop {}, adam {} or "
                  "ftrl {}");
  }
  if (optimizer.has_custom()) {
    const absl::Status made = MakeCustomOptimizer(optimizer.custom()).status();
    if (!made.ok()) return absl::InvalidArgumentError(absl::StrCat("optimizer.", made.message()));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckLearningRate(optimizer.learning_rate()));
  if (optimizer.has_clipping() && optimizer.clipping().kind_case() == Clipping::KIND_NOT_SET) {
    return Broken("optimizer.clipping", "it has no kind",
                  "write value, norm or global_norm, or remove it");
  }
  return CheckAverages(optimizer.variable_averages());
}

}  // namespace lockstep
