// What a model expects of its data.
#pragma once

#include "common/model/graph.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

ExampleSpec ExampleSpecOf(const ModelGraph& graph);

}  // namespace lockstep::worker
