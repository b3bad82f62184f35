// Rows that need a GPU: this machine's first. Each group in a file of its own name.
#pragma once

#include <vector>

#include "tests/bench/row.h"

namespace lockstep::bench::gpu {

// The towers of the demos, against PyTorch: gpu_digits/eager, gpu_digits/compile, ...
RowGroup TowerRows();
// gpu_resnet50_tf32, gpu_resnet50_bf16: forward and backward of 128 and 256 images of 224 x 224,
// against PyTorch.
RowGroup ResNet50Tf32Rows();
RowGroup ResNet50Bfloat16Rows();
// gpu_push and gpu_pull: shared memory that was registered, against pinned memory.
RowGroup CopyRows();
// gpu_relu, ...: own kernels, in bytes of device memory, against a copy there.
RowGroup KernelRows();
// gpu_dense, gpu_dense_tf32, gpu_dense_bf16: the op against cuBLASLt alone.
RowGroup DenseRows();

// In the order of the table.
const std::vector<RowGroup>& Rows();

}  // namespace lockstep::bench::gpu
