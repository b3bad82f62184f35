#include "worker/device/pinned_tensor.h"

#include <memory>
#include <utility>

namespace lockstep::worker {

Tensor PinnedTensor(Device* device, DType dtype, const Shape& shape) {
  if (device->is_host()) return Tensor(dtype, shape);
  absl::StatusOr<DeviceBuffer> buffer =
      device->AllocatePinned(static_cast<size_t>(shape.num_elements()) * SizeOf(dtype));
  if (!buffer.ok()) return Tensor(dtype, shape);
  std::byte* const memory = buffer->get();
  return Tensor::Borrow(dtype, shape, memory,
                        std::make_shared<const DeviceBuffer>(*std::move(buffer)));
}

TensorMaker PinnedTensors(Device* device) {
  return [device](DType dtype, const Shape& shape) { return PinnedTensor(device, dtype, shape); };
}

}  // namespace lockstep::worker
