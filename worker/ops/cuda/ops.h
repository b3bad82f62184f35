// Ops on a GPU, by kernels of our own.
#pragma once

#include "worker/ops/op_table.h"
#include "worker/ops/precision.h"

namespace lockstep::worker::cuda {

// For a CudaDevice.
const OpTable& Ops(Precision precision = Precision::kFloat32);

// The same while it is filled, before main: the file of each op adds it.
OpTable& MutableOps();

}  // namespace lockstep::worker::cuda
