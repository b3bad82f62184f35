// Checks that two towers, or two workers, have gradients of the same model.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/collective/packing_plan.h"

namespace lockstep::worker {

// INVALID_ARGUMENT naming the first difference in number, names, shapes or types, and the gradients
// that only one side has. `who` names the owner of `theirs`: "worker 1 (host:port)".
absl::Status CheckSameTensors(absl::Span<const TensorSpec> own, absl::Span<const TensorSpec> theirs,
                              const std::string& who);

}  // namespace lockstep::worker
