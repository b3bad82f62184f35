// FittingBackend chooses the backend for a model that not every device can compute.
#pragma once

#include "common/model/graph.h"
#include "worker/backend/backend.h"

namespace lockstep::worker {

// Returns `backend`. If --device=auto has found a GPU without an op for one of the layers: returns
// the CPU and logs a line. A device that the user named stays, and refuses the model.
Backend FittingBackend(const Backend& backend, const ModelGraph& graph);

}  // namespace lockstep::worker
