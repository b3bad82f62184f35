// The update rules of the variables that one optimizer trains.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "common/optimizer_proto/update_rule_of.h"

namespace lockstep {

// A value, constant after Create. Copies share the rules, which live as long as one of them.
class OptimizerRules {
 public:
  // Errors as UpdateRuleOf and AveragedRuleOf.
  static absl::StatusOr<OptimizerRules> Create(const OptimizerDef& optimizer);

  // Of a trained variable: with its moving average as the last slot, where the job keeps one.
  const UpdateRule& of(absl::string_view variable) const {
    return IsAveraged(optimizer_, variable) ? *averaged_ : *plain_;
  }
  bool is_averaged(absl::string_view variable) const { return IsAveraged(optimizer_, variable); }
  // Of statistics, which no rule changes; and for the scalars, which all rules share.
  const UpdateRule& plain() const { return *plain_; }

 private:
  OptimizerDef optimizer_;
  std::shared_ptr<const UpdateRule> plain_;
  std::shared_ptr<const UpdateRule> averaged_;  // null: no variable is averaged
};

}  // namespace lockstep
