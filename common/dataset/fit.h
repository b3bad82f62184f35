// Checks that examples fit a model's input, and that a job does not change their row indices.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/tensor/shape.h"
#include "proto/job.pb.h"

namespace lockstep {

// Equal shapes fit. So do examples that lack the model's single channel, [28,28] for [28,28,1], or
// its single time step, [8] for [1,8]. INVALID_ARGUMENT naming the file and both shapes otherwise.
absl::Status CheckExamplesFit(absl::string_view file, const Shape& examples, const Shape& input);

// For a model that takes row indices from its examples. INVALID_ARGUMENT naming the field where
// offset or scale would make other numbers of them.
absl::Status CheckIndicesKept(const DataDef& data);

}  // namespace lockstep
