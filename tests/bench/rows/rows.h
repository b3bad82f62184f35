// Every row, each group in a file of its own name. A new one is declared here and listed in
// rows.cc.
#pragma once

#include <vector>

#include "tests/bench/row.h"

namespace lockstep::bench {

absl::StatusOr<RowResult> ComputeDemoCnn(const BenchOptions& options);

// step_shm_2w/gloo, step_shm_2w/zeromq, ... for this many workers.
RowGroup StepRows(int workers);
// allreduce_xring_shm_2w/gloo, ... for this many workers.
RowGroup AllReduceRows(int workers);
// allreduce_packed_grpc_4w/unpacked.
RowGroup PackedAllReduceRows();
// step_5000_variables_shm_2w/step_shm_2w.
RowGroup ManyVariablesRows();
// step_during_save_2w for this many workers.
RowGroup StepDuringSaveRow(int workers);
// step_small_4w/grpc_unary, ...
RowGroup SmallStepRows();
// copy_shm_2w, copy_grpc_2w, copy_small_4w.
RowGroup CopyRows();

// sparse_step_adagrad/row_copies, ...
RowGroup SparseStepRows();

// grpc_push/tcp and grpc_pushpull/tcp.
RowGroup TransportRows();

absl::StatusOr<RowResult> Overlap(const BenchOptions& options);

// straggler/without_sleeper, ...
RowGroup StragglerRows();

// apply_sgd, apply_momentum, ...: one for each optimizer.
RowGroup ApplyRows();

absl::StatusOr<RowResult> StragglerPerReplica(const BenchOptions& options);

RowGroup TensorFlowLargeRows();
RowGroup TensorFlowSmallRows();
RowGroup TensorFlowMultiWorkerRows();

// In the order of the table.
const std::vector<RowGroup>& Rows();

}  // namespace lockstep::bench
