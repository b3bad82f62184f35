// The values that the accepted gradients of a job make, version by version, to the last bit: per
// step and variable the job's update rule with their mean (step_mean.h). In an asynchronous job
// each gradient makes a version. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/optimizer/update_rule.h"
#include "common/tensor/tensor.h"
#include "tests/sim/history.h"
#include "tests/sim/sim_options.h"

namespace lockstep::sim {

// Methods that return a text tell what is wrong; nothing when all is right.
class ExpectedValues {
 public:
  // `options` outlives this.
  explicit ExpectedValues(const SimOptions* options);

  // Those of a job that goes back to the beginning of this step; nullopt: it has not come there.
  std::optional<ExpectedValues> BackAt(GlobalStep step) const;

  // What was judged, in the order in which that happened.
  std::optional<std::string> Add(const Judged& gradient);
  // Whether the values of this version can be told. Those of a range that closes before the rest
  // of its variable are shown before all of its gradients are judged.
  bool Knows(uint32_t variable, GlobalStep version) const;
  // What somebody was given, after all that was judged before.
  std::optional<std::string> Compare(const Pulled& pulled);
  // Another server goes on with the variable in this version: it has none of the gradients that
  // were accepted for later ones.
  std::optional<std::string> TakeOver(uint32_t variable, GlobalStep version);
  // All steps before this one are closed.
  std::optional<std::string> Close(GlobalStep step);
  // Versions of the variable that are known, the first one included.
  size_t versions(uint32_t variable) const { return variables_[variable].versions.size(); }

 private:
  using PushId = std::tuple<WorkerIndex, Incarnation, PushSeq>;

  // Constant: the values, then the slots of the rule.
  using Version = std::shared_ptr<const std::vector<Tensor>>;
  struct Variable {
    std::vector<Version> versions;
    std::map<GlobalStep, std::vector<Judged>> accepted;  // of steps without a next version
    std::set<PushId> counted;                            // of those with one
  };

  // Makes versions up to this one.
  std::optional<std::string> Make(uint32_t index, size_t version);
  Version FirstVersion(uint32_t index) const;
  // That follows the newest one.
  Version Step(uint32_t index, std::vector<Judged> gradients) const;
  // The numbers of the rule after so many steps.
  std::vector<float> ScalarsAfter(size_t steps) const;
  std::optional<std::string> CompareWithOthers(const Pulled& pulled);

  const SimOptions* options_;
  uint32_t least_;  // gradients of a step
  std::shared_ptr<const UpdateRule> rule_;
  std::vector<Variable> variables_;
  // Of a replicated job: what was given first.
  std::map<std::pair<GlobalStep, uint32_t>, std::vector<float>> given_;
};

}  // namespace lockstep::sim
