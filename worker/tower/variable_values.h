// The variables as a tower is given them: whole, or of the tables only the rows that the batch
// reads.
#pragma once

#include <cstdint>
#include <span>

#include "common/tensor/tensor.h"

namespace lockstep::worker {

// Does not own. Both are in the order of graph.variables().
struct VariableValues {
  std::span<const TensorView> views;
  // Of a sparse variable: which of its rows views[i] holds, ascending, each once; the view's shape
  // is [rows[i].size(), dim]. Every row that the batch reads must be there. Of other variables
  // nothing is read. Empty as a whole: tables are whole too.
  std::span<const std::span<const int64_t>> rows = {};
};

}  // namespace lockstep::worker
