// What the chief says of a checkpoint whose model has diverged.
#pragma once

#include <string>

#include "common/checkpoint/checkpoint.h"

namespace lockstep::chief {

// Of the checkpoint in `folder`, with its manifest: that it has values which are infinite or NaN,
// and how to go back to the newest one that has not. Empty where all its values are finite. Reads
// the manifests beside it otherwise.
std::string DescribeDivergence(const std::string& folder, const Manifest& manifest);

}  // namespace lockstep::chief
