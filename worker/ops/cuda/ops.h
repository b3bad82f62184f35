// Ops on a GPU, by kernels of our own.
#pragma once

#include "worker/ops/op_table.h"

namespace lockstep::worker::cuda {

// For a CudaDevice.
const OpTable& Ops();

// The same while it is filled, before main: the file of each op adds it.
OpTable& MutableOps();

}  // namespace lockstep::worker::cuda
