// BatchRows finds the table rows that a step needs: those that its batches look up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/graph.h"
#include "common/model/index_columns.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// Not thread-safe. The cost of Collect depends on the rows of the batches, hardly on the size of
// the tables. It allocates nothing once it has seen the largest number of rows.
class BatchRows {
 public:
  explicit BatchRows(const ModelGraph& graph);

  // By variable: the most rows for which `examples` can have a gradient; 0 if it is not a table.
  std::vector<int64_t> MostRows(int64_t examples) const;

  // Finds the rows of the batches of all towers together. Indices are valid: the data's reader has
  // checked them.
  void Collect(std::span<const Batch> batches);

  // In the form of VariableValues::rows: by variable of the graph; empty if it is not a table.
  // Valid until the next Collect.
  std::span<const std::span<const int64_t>> rows() const { return rows_; }

 private:
  struct Table {
    IndexColumns index;
    // A bit for each row, and one for each word of these; all 0 between calls.
    std::vector<uint64_t> seen;
    std::vector<uint64_t> seen_words;
    std::vector<int64_t> rows;  // ascending
  };

  static void Mark(const Batch& batch, Table* table);
  // Lists the marked rows and clears the marks.
  static void ListMarked(Table* table);

  std::vector<Table> tables_;
  std::vector<std::span<const int64_t>> rows_;
};

// Returns the largest shape that a step has of a variable: of a table, `most_rows` rows.
Shape MostOf(const ModelVariable& variable, int64_t most_rows);

}  // namespace lockstep::worker
