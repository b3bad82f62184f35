#include "common/model/index_columns.h"

namespace lockstep {

std::optional<ColumnRange> ColumnsOfExample(absl::Span<const ModelNode> nodes, int node) {
  ColumnRange range{0, nodes[node].output.dims().back()};
  while (node != 0) {
    if (!nodes[node].layer.has_columns()) return std::nullopt;
    range.first += nodes[node].layer.columns().first();
    node = nodes[node].inputs[0];
  }
  return range;
}

std::vector<IndexColumns> IndexColumnsOf(const ModelGraph& graph) {
  std::vector<IndexColumns> all;
  for (const ModelNode& node : graph.nodes()) {
    if (!node.layer.has_embedding()) continue;
    // Build has refused any other input.
    all.push_back({node.variables[0], node.layer.embedding().rows(),
                   *ColumnsOfExample(graph.nodes(), node.inputs[0])});
  }
  return all;
}

}  // namespace lockstep
