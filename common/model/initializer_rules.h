// What an initializer written in a model file may say.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "proto/model.pb.h"
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

// Fills in `bias_initializer` of a layer that has a bias. INVALID_ARGUMENT where one is given to a
// layer without.
template <typename Def>
absl::Status CompleteBias(Def& def, const Initializer& fallback) {
  if (!def.no_bias()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        *def.mutable_bias_initializer(),
        CompleteInitializer("bias_initializer", def.bias_initializer(), fallback));
  } else if (def.has_bias_initializer()) {
    return absl::InvalidArgumentError(
        "bias_initializer: the layer has no bias. Remedy: remove it, or no_bias");
  }
  return absl::OkStatus();
}

// The first field of the layer's kind in which an initializer is written; empty if there is none.
absl::string_view GivenInitializer(const LayerDef& layer);

}  // namespace lockstep
