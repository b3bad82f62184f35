// Ops on the host's processor: oneDNN where it has the op, plain loops elsewhere.
#pragma once

#include "worker/ops/op_table.h"

namespace lockstep::worker::cpu {

// For a CpuDevice, or another device whose streams are HostStreams.
const OpTable& Ops();

// The same while it is filled, before main: the file of each op adds it.
OpTable& MutableOps();

}  // namespace lockstep::worker::cpu
