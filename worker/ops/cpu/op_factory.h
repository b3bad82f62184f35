// Ops on the host's processor: oneDNN where it has the op, plain loops elsewhere.
#pragma once

#include <memory>

#include "worker/device/device.h"
#include "worker/ops/op_factory.h"

namespace lockstep::worker::cpu {

// `device` is a CpuDevice and outlives the factory.
std::unique_ptr<OpFactory> MakeOpFactory(const Device* device);

}  // namespace lockstep::worker::cpu
