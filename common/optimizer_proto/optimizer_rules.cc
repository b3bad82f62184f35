#include "common/optimizer_proto/optimizer_rules.h"

#include "common/base/status_macros.h"

namespace lockstep {

absl::StatusOr<OptimizerRules> OptimizerRules::Create(const OptimizerDef& optimizer) {
  OptimizerRules rules;
  rules.optimizer_ = optimizer;
  LOCKSTEP_ASSIGN_OR_RETURN(rules.plain_, UpdateRuleOf(optimizer));
  LOCKSTEP_ASSIGN_OR_RETURN(rules.averaged_, AveragedRuleOf(optimizer));
  return rules;
}

}  // namespace lockstep
