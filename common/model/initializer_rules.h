// What an initializer written in a model file may say.
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

// The initializer with defaults filled in; `fallback` where none is given. INVALID_ARGUMENT naming
// `field` for values that make no number, and for unit_forget_bias unless that is the fallback.
absl::StatusOr<Initializer> CompleteInitializer(absl::string_view field, const Initializer& given,
                                                const Initializer& fallback);

}  // namespace lockstep
