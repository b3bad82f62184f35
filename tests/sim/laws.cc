#include "tests/sim/laws.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);

class Violations {
 public:
  template <typename... Parts>
  void AddUnless(bool holds, const Parts&... parts) {
    if (!holds) lines_.push_back(absl::StrCat(parts...));
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> BrokenAsynchronousLaws(const SimCluster& cluster) {
  Violations violations;
  const SimOptions& options = cluster.options();
  for (uint32_t variable = 0; variable < options.variables.size(); variable += options.ps) {
    const int taken = cluster.history().Accepted(variable);
    violations.AddUnless(taken == options.steps, "variable ", variable, " took ", taken,
                         " gradients in ", options.steps, " steps");
  }
  violations.AddUnless(cluster.shard(0).Report().state.shard_step == GlobalStep(options.steps),
                       "the step shard did not stop at its last step");
  return violations.Take();
}

std::vector<std::string> BrokenFifoLaws(const SimCluster& cluster) {
  Violations violations;
  const SimOptions& options = cluster.options();
  const History& history = cluster.history();
  const int per_step = cluster.tokens_per_step();
  const int64_t init = options.init_tokens < 0 ? options.aggregate : options.init_tokens;
  for (GlobalStep step; step <= cluster.global_step(); step = step.next()) {
    const bool first = step == GlobalStep();
    const int tokens = history.TokensOf(step);
    violations.AddUnless(tokens <= (first ? init : per_step), tokens, " tokens of step ",
                         step.value());
    if (!first && step < cluster.global_step()) {
      violations.AddUnless(tokens >= static_cast<int>(options.aggregate), "step ", step.value(),
                           " was closed with only ", tokens, " of its tokens handed out");
    }
    for (uint32_t variable = 0; variable < options.variables.size(); ++variable) {
      // Each token stamps one gradient, and so does each start.
      const int pushes = history.Pushes(variable, step);
      const int starts = cluster.Starts(step);
      violations.AddUnless(pushes <= tokens + starts, pushes, " gradients of variable ", variable,
                           " stamped ", step.value(), " with ", tokens, " tokens and ", starts,
                           " starts");
      if (!first && starts == 0 && step < cluster.global_step() &&
          per_step == static_cast<int>(options.aggregate)) {
        const int accepted = history.Accepted(variable, step);
        violations.AddUnless(accepted == per_step, accepted, " accepted in step ", step.value(),
                             " without backups");
      }
    }
  }
  // A queue: what was put in first comes out first.
  GlobalStep newest;
  for (const HandedOut& token : history.tokens) {
    violations.AddUnless(token.step >= newest, "token ", token.step.value(), " left after ",
                         newest.value());
    newest = std::max(newest, token.step);
  }
  return violations.Take();
}

std::vector<std::string> Differences(SimCluster* one, SimCluster* other) {
  std::vector<std::string> lines;
  for (uint32_t variable = 0; variable < one->options().variables.size(); ++variable) {
    if (one->Values(variable) == other->Values(variable)) continue;
    lines.push_back(absl::StrCat("variable ", variable, " differs"));
  }
  return lines;
}

std::string RunAndJudge(SimCluster* cluster) {
  cluster->StartAll();
  if (!cluster->RunToEnd(kLimit)) return "somebody waits for ever: " + Describe(*cluster);
  std::vector<std::string> broken;
  if (cluster->options().token_policy == FIFO) broken = BrokenFifoLaws(*cluster);
  if (!cluster->end()->ok()) broken.push_back(cluster->end()->ToString());
  if (cluster->global_step() != GlobalStep(cluster->options().steps)) {
    broken.push_back("not all steps were made");
  }
  for (uint32_t i = 0; i < cluster->options().workers; ++i) {
    const absl::Status& end = *cluster->worker(i).end();
    if (!end.ok()) broken.push_back(end.ToString());
  }
  return absl::StrJoin(broken, "; ");
}

}  // namespace lockstep::sim
