// Rows that need a GPU: this machine's first. Each group in a file of its own name.
#pragma once

#include <vector>

#include "tests/bench/row.h"

namespace lockstep::bench::gpu {

// The towers of the demos, against PyTorch: gpu_digits/eager, gpu_digits/compile, ...
RowGroup TowerRows();
// gpu_push and gpu_pull: shared memory that was registered, against pinned memory.
RowGroup CopyRows();
// gpu_relu, ...: own kernels, in bytes of device memory, against a copy there.
RowGroup KernelRows();
// gpu_dense: the op against cuBLASLt alone.
RowGroup DenseRow();

// In the order of the table.
const std::vector<RowGroup>& Rows();

}  // namespace lockstep::bench::gpu
