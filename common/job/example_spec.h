// Derives the ExampleSpec of a model from its graph.
#pragma once

#include "common/dataset/example_spec.h"
#include "common/model/graph.h"

namespace lockstep {

ExampleSpec ExampleSpecOf(const ModelGraph& graph);

}  // namespace lockstep
