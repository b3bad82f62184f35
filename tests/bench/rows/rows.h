// Every row, each in a file of its own name. A new one is declared here and listed in rows.cc.
#pragma once

#include <vector>

#include "tests/bench/row.h"

namespace lockstep::bench {

absl::StatusOr<RowResult> ComputeDemoCnn(const BenchOptions& options);

absl::StatusOr<RowResult> StragglerPerReplica(const BenchOptions& options);

// In the order of the table.
const std::vector<Row>& Rows();

}  // namespace lockstep::bench
