#include "chief/plan/losses.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/optimizer_proto/learning_rate.h"
#include "common/tensor_proto/turns.h"

namespace lockstep::chief {
namespace {

std::string KindOf(const OptimizerDef& optimizer) {
  const auto* kind = OptimizerDef::descriptor()->FindFieldByNumber(optimizer.kind_case());
  return kind == nullptr ? "none" : kind->name();
}

}  // namespace

void SetTurns(const JobDef& job, const ModelGraph& graph, absl::Span<const uint32_t> losses,
              Placement* placement) {
  absl::flat_hash_map<absl::string_view, uint32_t> loss_of;
  for (size_t i = 0; i < losses.size(); ++i) loss_of[graph.variables()[i].name] = losses[i];
  for (VariableSpec& spec : *placement->mutable_variables()) {
    spec.set_loss(loss_of.at(spec.has_part() ? spec.part().of() : spec.name()));
  }
  for (const LossDef& loss : job.losses()) placement->add_turns(loss.steps());
}

std::vector<GradientTurns> TurnsOfShards(const Placement& placement) {
  const LossTurns turns({placement.turns().begin(), placement.turns().end()});
  std::vector<std::vector<int>> turns_of(placement.shards());
  for (const VariableSpec& spec : placement.variables()) {
    turns_of[spec.shard()].push_back(TurnOf(spec));
  }
  std::vector<GradientTurns> shards;
  for (std::vector<int>& of : turns_of) shards.emplace_back(turns, std::move(of));
  return shards;
}

std::function<float(GlobalStep)> LearningRateOf(const JobDef& job) {
  std::vector<LearningRateSchedule> schedules;
  std::vector<int64_t> steps;
  for (const LossDef& loss : job.losses()) {
    schedules.push_back(ToSchedule(loss.optimizer().learning_rate()));
    steps.push_back(loss.steps());
  }
  if (schedules.empty()) schedules.push_back(ToSchedule(job.optimizer().learning_rate()));
  return [turns = LossTurns(steps), schedules = std::move(schedules)](GlobalStep step) {
    return LearningRateAt(schedules[turns.LossOf(step)], step);
  };
}

std::string OptimizerKindOf(const JobDef& job) {
  if (job.losses().empty()) return KindOf(job.optimizer());
  return absl::StrJoin(job.losses(), ", ", [](std::string* text, const LossDef& loss) {
    absl::StrAppend(text, loss.name(), ": ", KindOf(loss.optimizer()));
  });
}

}  // namespace lockstep::chief
