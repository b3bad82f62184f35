#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/optimizer/update_rule.h"
#include "proto/job.pb.h"

namespace lockstep::ps {

// The rule that a job's optimizer names, unset numbers at their defaults. Averages are another
// matter. INVALID_ARGUMENT: no kind.
absl::StatusOr<std::unique_ptr<const UpdateRule>> UpdateRuleOf(const OptimizerDef& optimizer);

}  // namespace lockstep::ps
