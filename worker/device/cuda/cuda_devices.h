// What a GPU is called, for people.
#pragma once

#include <string>

#include "worker/device/cuda/driver.h"

namespace lockstep::worker::cuda {

// "NVIDIA H100, 79 GiB, compute capability 9.0", or what the driver says instead. `ordinal`: in [0,
// driver.device_count()). Any thread.
std::string DescribeDevice(const Driver& driver, int ordinal);

}  // namespace lockstep::worker::cuda
