// Checks that a job can start from a checkpoint.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint.h"
#include "proto/tensor.pb.h"

namespace lockstep::chief {

// Every variable must be in the manifest with its type and shape; the split into rows may differ.
// The optimizer must be of the same kind. INVALID_ARGUMENT naming the difference. DATA_LOSS for
// parts of a variable that do not fit together. Pure.
absl::Status CheckRestorable(const Manifest& manifest, const Placement& placement,
                             absl::string_view optimizer);

}  // namespace lockstep::chief
