// Initializers of a job's model that nothing would read.
#pragma once

#include "absl/status/status.h"
#include "proto/model.pb.h"

namespace lockstep {

// INVALID_ARGUMENT, with layer, field and remedy: an initializer of a layer that uses the variables
// of another one, or of a bias that the layer does not have. The model has been built. The model of
// a checkpoint may have them: it was written before they were refused.
absl::Status CheckInitializers(const ModelDef& model);

}  // namespace lockstep
