// Finds the columns of an example that are row indices. Embeddings and synthetic tables look them
// up; they are not numbers to compute with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/model/graph.h"

namespace lockstep {

// Columns [first, first + count) of an example of rank 1.
struct ColumnRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Returns the columns that `node` passes on unchanged: all of the input, or those that columns
// layers select. nullopt: it computes. `nodes` is as in ModelGraph, at least up to `node`.
std::optional<ColumnRange> ColumnsOfExample(absl::Span<const ModelNode> nodes, int node);

struct IndexColumns {
  int variable = 0;  // the table: an index into ModelGraph::variables()
  int64_t rows = 0;  // of the table; an index is a whole number in [0, rows)
  ColumnRange columns;
};

// Returns the rows of the tables in which the layer looks its input up; nullopt: it has none.
std::optional<int64_t> TableRows(const LayerDef& layer);

// One for each table, in the order of the graph.
std::vector<IndexColumns> IndexColumnsOf(const ModelGraph& graph);

}  // namespace lockstep
