#include "tests/sim/laws.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);

// The gradients that count in one step of one variable, in the order of summation.
std::vector<Judged> Counted(const SimCluster& cluster, uint32_t variable, GlobalStep step) {
  std::vector<Judged> counted;
  std::set<WorkerIndex> seen;
  for (const Judged& push : cluster.history().judged) {
    if (push.variable != variable || push.stamp != step || !push.accepted) continue;
    // A replica that has been counted is told "accepted" again, and not counted again.
    if (cluster.options().token_policy == PER_REPLICA && !seen.insert(push.worker).second) continue;
    counted.push_back(push);
  }
  std::sort(counted.begin(), counted.end(), [](const Judged& a, const Judged& b) {
    return std::tie(a.worker, a.push_seq) < std::tie(b.worker, b.push_seq);
  });
  return counted;
}

// The variable's values in every version up to `last`.
std::vector<std::vector<float>> Versions(const SimCluster& cluster, uint32_t variable,
                                         GlobalStep last) {
  const int64_t elements = cluster.options().variables[variable];
  std::vector<std::vector<float>> versions = {
      std::vector<float>(static_cast<size_t>(elements), kInitialValue)};
  for (GlobalStep step; step < last; step = step.next()) {
    const std::vector<Judged> counted = Counted(cluster, variable, step);
    std::vector<float> values = versions.back();
    for (int64_t i = 0; i < elements && !counted.empty(); ++i) {
      float sum = 0;
      for (size_t k = 0; k < counted.size(); ++k) {
        const PushSeq seed = cluster.options().same_every_time ? PushSeq() : counted[k].push_seq;
        const float gradient = GradientOf(counted[k].worker, seed, step, variable, i);
        sum = k == 0 ? gradient : sum + gradient;
      }
      const float mean = sum / static_cast<float>(counted.size());
      values[static_cast<size_t>(i)] -= mean * kLearningRate;
    }
    versions.push_back(std::move(values));
  }
  return versions;
}

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

// Steps close with enough gradients, and each worker's tokens never go back.
void CheckAnyPolicy(const SimCluster& cluster, Violations* violations) {
  const History& history = cluster.history();
  const auto variables = static_cast<uint32_t>(cluster.options().variables.size());
  const bool shrinks = cluster.options().quorum_policy == SHRINK;
  const uint32_t least = shrinks ? 1 : cluster.options().aggregate;
  for (GlobalStep step; step < cluster.global_step(); step = step.next()) {
    for (uint32_t variable = 0; variable < variables; ++variable) {
      const auto counted = static_cast<uint32_t>(Counted(cluster, variable, step).size());
      violations->AddUnless(counted >= least, "step ", step.value(), " of variable ", variable,
                            " closed with ", counted, " gradients");
    }
  }
  std::map<Incarnation, GlobalStep> newest;
  for (const HandedOut& token : history.tokens) {
    GlobalStep& last = newest[token.incarnation];
    violations->AddUnless(token.step >= last, "worker ", token.worker.value(), " got token ",
                          token.step.value(), " after ", last.value());
    last = token.step;
  }
}

// Whatever anybody pulled of the variable is what `versions` say.
void CheckPulled(const SimCluster& cluster, uint32_t variable,
                 const std::vector<std::vector<float>>& versions, Violations* violations) {
  for (const Pulled& pulled : cluster.history().pulled) {
    if (pulled.variable != variable) continue;
    const auto version = static_cast<size_t>(pulled.version.value());
    const bool exists = version < versions.size() &&
                        pulled.first + pulled.values.size() <= versions[version].size();
    violations->AddUnless(exists && std::equal(pulled.values.begin(), pulled.values.end(),
                                               versions[version].begin() + pulled.first),
                          "variable ", variable, " in version ", version,
                          " is not what its gradients make");
  }
}

}  // namespace

std::vector<std::string> BrokenNumbers(const SimCluster& cluster) {
  Violations violations;
  for (uint32_t variable = 0; variable < cluster.options().variables.size(); ++variable) {
    const auto versions = Versions(cluster, variable, cluster.global_step());
    CheckPulled(cluster, variable, versions, &violations);
  }
  return violations.Take();
}

std::vector<std::string> BrokenAsynchronousLaws(const SimCluster& cluster) {
  Violations violations;
  const SimOptions& options = cluster.options();
  for (uint32_t variable = 0; variable < options.variables.size(); ++variable) {
    const auto elements = static_cast<size_t>(options.variables[variable]);
    std::vector<std::vector<float>> versions = {std::vector<float>(elements, kInitialValue)};
    for (const Judged& push : cluster.history().judged) {
      if (push.variable != variable || !push.accepted) continue;
      const int64_t staleness = static_cast<int64_t>(versions.size()) - 1 - push.stamp.value();
      violations.AddUnless(staleness >= 0 && staleness <= options.max_staleness.value_or(staleness),
                           "variable ", variable, " took a gradient of staleness ", staleness);
      std::vector<float> values = versions.back();
      for (size_t i = 0; i < elements; ++i) {
        values[i] -= GradientOf(push.worker, push.push_seq, GlobalStep(), variable,
                                static_cast<int64_t>(i)) *
                     kLearningRate;
      }
      versions.push_back(std::move(values));
    }
    const auto taken = static_cast<int64_t>(versions.size()) - 1;
    const uint32_t shard = variable % options.ps;
    violations.AddUnless(shard != 0 || taken == options.steps, "variable ", variable, " took ",
                         taken, " gradients in ", options.steps, " steps");
    violations.AddUnless(
        shard != 0 || cluster.shard(0).Report().state.shard_step == GlobalStep(options.steps),
        "the step shard did not stop at its last step");
    CheckPulled(cluster, variable, versions, &violations);
  }
  return violations.Take();
}

std::vector<std::string> BrokenFifoLaws(const SimCluster& cluster) {
  Violations violations;
  CheckAnyPolicy(cluster, &violations);
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

std::vector<std::string> BrokenPerReplicaLaws(const SimCluster& cluster) {
  Violations violations;
  CheckAnyPolicy(cluster, &violations);
  std::set<std::pair<Incarnation, GlobalStep>> tokens;
  for (const HandedOut& token : cluster.history().tokens) {
    violations.AddUnless(tokens.insert({token.incarnation, token.step}).second, "worker ",
                         token.worker.value(), " got two tokens of step ", token.step.value());
  }
  std::set<std::tuple<uint32_t, Incarnation, GlobalStep>> pushes;
  for (const Judged& push : cluster.history().judged) {
    violations.AddUnless(pushes.insert({push.variable, push.incarnation, push.stamp}).second,
                         "worker ", push.worker.value(), " pushed twice with stamp ",
                         push.stamp.value());
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
  std::vector<std::string> broken = BrokenNumbers(*cluster);
  const bool fifo = cluster->options().token_policy == FIFO;
  for (const std::string& line : fifo ? BrokenFifoLaws(*cluster) : BrokenPerReplicaLaws(*cluster)) {
    broken.push_back(line);
  }
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
