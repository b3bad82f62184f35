// Where a model is computed that not every device can compute.
#pragma once

#include "common/model/graph.h"
#include "worker/backend/backend.h"

namespace lockstep::worker {

// `backend` itself; or the CPU, and a line in the log, where --device=auto has found a GPU that has
// no op for one of the layers. One that the user named stays, and refuses the model.
Backend FittingBackend(const Backend& backend, const ModelGraph& graph);

}  // namespace lockstep::worker
