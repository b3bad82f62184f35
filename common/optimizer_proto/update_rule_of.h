#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/optimizer/update_rule.h"
#include "proto/job.pb.h"

namespace lockstep {

// The rule that a job's optimizer names, unset numbers at their defaults. INVALID_ARGUMENT: no
// kind.
absl::StatusOr<std::unique_ptr<const UpdateRule>> UpdateRuleOf(const OptimizerDef& optimizer);

// The same for variables whose moving average is kept, its slot the last one; nullptr where the
// optimizer has no variable_averages. INVALID_ARGUMENT also: a decay that is none.
absl::StatusOr<std::unique_ptr<const UpdateRule>> AveragedRuleOf(const OptimizerDef& optimizer);
// Whether the optimizer averages the trained variable of this name.
bool IsAveraged(const OptimizerDef& optimizer, absl::string_view variable);

}  // namespace lockstep
