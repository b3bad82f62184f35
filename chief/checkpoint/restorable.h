// Whether a checkpoint can be the start of a job.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint.h"
#include "proto/tensor.pb.h"

namespace lockstep::chief {

// INVALID_ARGUMENT naming what differs: every variable must be there with its type and shape,
// however it is split by rows there and here, and the optimizer must be of the same kind. DATA_LOSS
// for parts of a variable that do not fit. Pure.
absl::Status CheckRestorable(const Manifest& manifest, const Placement& placement,
                             absl::string_view optimizer);

}  // namespace lockstep::chief
