// The output of one layer of a model in place of its prediction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// The graph that predicts the output of this layer (ModelGraph::ForLayer). INVALID_ARGUMENT listing
// the layers that have one.
absl::StatusOr<ModelGraph> CutAtLayer(const ModelGraph& graph, const std::string& layer);

// Whether what the graph predicts depends on examples; else on its noise alone.
bool ReadsExamples(const ModelGraph& graph);
// Zeros, for a graph that reads none.
std::unique_ptr<TestSet> MakeZeroExamples(const ModelGraph& graph, int64_t count);

}  // namespace lockstep::worker
