// The warning text for a checkpoint whose model has diverged.
#pragma once

#include <string>

#include "common/checkpoint/checkpoint.h"

namespace lockstep::chief {

// Describes the checkpoint in `folder` with this manifest: it has values that are infinite or NaN.
// Names the newest checkpoint without such values, and the remedy. Returns an empty text, and reads
// nothing, if all values are finite. Otherwise reads the manifests of the other checkpoints.
std::string DescribeDivergence(const std::string& folder, const Manifest& manifest);

}  // namespace lockstep::chief
