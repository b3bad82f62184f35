// Checks the initializers of a model file and fills in their defaults.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/tensor.pb.h"

namespace lockstep {

Initializer Zeros();
Initializer Ones();
Initializer Glorot();
Initializer TruncatedNormal(float stddev);
Initializer Orthogonal();
Initializer UnitForgetBias();

// Returns the initializer with defaults filled in; `fallback` if none is given. INVALID_ARGUMENT
// naming `field`: invalid values, or unit_forget_bias unless that is the fallback.
absl::StatusOr<Initializer> CompleteInitializer(absl::string_view field, const Initializer& given,
                                                const Initializer& fallback);

}  // namespace lockstep
