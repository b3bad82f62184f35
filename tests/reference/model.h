// A whole model in double precision: the graph walked layer by layer.
#pragma once

#include <vector>

#include "common/model/graph.h"
#include "tests/reference/array.h"
#include "worker/data/batch.h"

namespace lockstep::reference {

// The scores of the loss that is evaluated; `variables` are in the order of graph.variables().
// `training`: batch norm takes the moments of the batch. Dropout does nothing here.
Array Scores(const ModelGraph& graph, const std::vector<Array>& variables,
             const worker::Batch& batch, bool training);

// The sum of the graph's losses.
double MeanLoss(const ModelGraph& graph, const std::vector<Array>& variables,
                const worker::Batch& batch, bool training);

}  // namespace lockstep::reference
