// Describes a GPU for logs and messages.
#pragma once

#include <string>

#include "worker/device/cuda/driver.h"

namespace lockstep::worker::cuda {

// Returns "NVIDIA H100, 79 GiB, compute capability 9.0", or the driver's error. `ordinal` is in [0,
// driver.device_count()). Any thread.
std::string DescribeDevice(const Driver& driver, int ordinal);

}  // namespace lockstep::worker::cuda
