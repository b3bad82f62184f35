// Which rows of its tables a step needs: those that its batches look up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/graph.h"
#include "common/model/index_columns.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// Not thread-safe. Collect costs what the batches' rows do, hardly what their tables do; it
// allocates nothing once it has seen as many rows as it ever will.
class BatchRows {
 public:
  explicit BatchRows(const ModelGraph& graph);

  // By variable, of how many rows so many examples can have a gradient; 0 for one that is no table.
  std::vector<int64_t> MostRows(int64_t examples) const;

  // Finds the rows of the batches of all towers together. Indices are sound: the data's reader has
  // checked them.
  void Collect(std::span<const Batch> batches);

  // As VariableValues::rows wants them: by variable of the graph; nothing for one that is no table.
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
  // Lists what is marked and takes the marks away.
  static void ListMarked(Table* table);

  std::vector<Table> tables_;
  std::vector<std::span<const int64_t>> rows_;
};

// What a step has of a variable at most: of a table, so many rows.
Shape MostOf(const ModelVariable& variable, int64_t most_rows);

}  // namespace lockstep::worker
