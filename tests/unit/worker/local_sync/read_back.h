// ReadBack copies a tensor that a tower reads to the host.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "common/tensor/tensor.h"
#include "worker/device/device.h"

namespace lockstep::test {

// Returns the float32 elements of a tensor in memory of the device.
inline std::vector<float> ReadBack(worker::Device* device, const TensorView& tensor) {
  std::vector<float> values(tensor.num_elements());
  const auto stream = *device->CreateStream({});
  const auto event = *device->CreateEvent();
  stream->CopyToHost(values.data(), tensor.data, tensor.num_bytes());
  stream->Record(event.get());
  REQUIRE(event->Wait().ok());
  return values;
}

}  // namespace lockstep::test
