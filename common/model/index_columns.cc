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

std::optional<int64_t> TableRows(const LayerDef& layer) {
  if (layer.has_embedding()) return layer.embedding().rows();
  if (layer.synthetic().rows() != 0) return layer.synthetic().rows();
  return std::nullopt;
}

std::vector<IndexColumns> IndexColumnsOf(const ModelGraph& graph) {
  std::vector<IndexColumns> all;
  for (const ModelNode& node : graph.nodes()) {
    const std::optional<int64_t> rows = TableRows(node.layer);
    if (!rows.has_value()) continue;
    // Build has refused any other input.
    const ColumnRange columns = *ColumnsOfExample(graph.nodes(), node.inputs[0]);
    for (const int variable : node.variables) all.push_back({variable, *rows, columns});
  }
  return all;
}

}  // namespace lockstep
