// What a model expects of its data.
#pragma once

#include "common/dataset/example_spec.h"
#include "common/model/graph.h"

namespace lockstep {

ExampleSpec ExampleSpecOf(const ModelGraph& graph);

}  // namespace lockstep
