#include "common/job/example_spec.h"

#include <algorithm>

#include "common/model/index_columns.h"

namespace lockstep {
namespace {

// Of several losses on the same labels one is enough.
bool PredictsProbabilities(const ModelGraph& graph) {
  return std::ranges::any_of(graph.loss_nodes(), [&graph](int node) {
    const LayerDef& loss = graph.nodes()[node].layer;
    return loss.has_sigmoid_cross_entropy() && !loss.sigmoid_cross_entropy().has_target();
  });
}

}  // namespace

ExampleSpec ExampleSpecOf(const ModelGraph& graph) {
  ExampleSpec spec{graph.input_shape(), graph.is_classifier(), graph.num_outputs(), {}};
  for (const IndexColumns& index : IndexColumnsOf(graph)) {
    spec.row_indices.push_back({index.columns.first, index.columns.count, index.rows});
  }
  spec.uses_labels = graph.uses_labels();
  spec.predicts_probabilities = PredictsProbabilities(graph);
  spec.labels_per_example = graph.labels_per_example();
  for (int state = 1; state <= graph.num_state_inputs(); ++state) {
    const ModelNode& node = graph.nodes()[state];
    spec.state_inputs.push_back({node.name, node.output.num_elements()});
  }
  return spec;
}

}  // namespace lockstep
