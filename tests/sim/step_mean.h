// The mean of the gradients of a variable that a step has counted, as a shard makes it: summed in
// the order (worker, push_seq). Of a table row by row, over the gradients that have the row. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/tensor/tensor.h"
#include "tests/sim/history.h"
#include "tests/sim/sim_options.h"

namespace lockstep::sim {

struct StepMean {
  std::vector<int64_t> rows;  // of a table: those of `values`, ascending
  Tensor values;
};

// `shape`: of the variable. At least one gradient.
StepMean MeanOf(const SimOptions& options, uint32_t variable, const Shape& shape,
                std::vector<Judged> gradients);

}  // namespace lockstep::sim
