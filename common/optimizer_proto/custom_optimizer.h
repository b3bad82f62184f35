// Optimizers that the job file names by a string (OptimizerDef.custom): what others add without a
// change to this project. docs/job.md has the field.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/custom/parameters.h"
#include "common/optimizer/update_rule.h"

namespace lockstep {

// Reads all parameters that the optimizer has; what else is given is refused. INVALID_ARGUMENT: a
// value out of range.
using MakeOptimizer =
    absl::StatusOr<std::unique_ptr<const UpdateRule>> (*)(CustomParameters* parameters);

// Registers the optimizer of this type, which no other one has (CHECK). True. Before main, by a
// constant in the file of the optimizer:
//   const bool kRegistered = RegisterOptimizer("signum", MakeSignum);
// Link that file into the chief and every ps (alwayslink = True): each must know the type.
bool RegisterOptimizer(const std::string& type, MakeOptimizer make);

// INVALID_ARGUMENT: a type that is not registered, naming those that are; parameters that it does
// not have; the errors of its MakeOptimizer.
absl::StatusOr<std::unique_ptr<const UpdateRule>> MakeCustomOptimizer(const CustomKind& kind);

}  // namespace lockstep
