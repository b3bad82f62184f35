#include "worker/device/pinned_tensor.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<Tensor> TryPinnedTensor(Device* device, DType dtype, const Shape& shape) {
  if (device->is_host()) return Tensor(dtype, shape);
  LOCKSTEP_ASSIGN_OR_RETURN(
      DeviceBuffer buffer,
      device->AllocatePinned(static_cast<size_t>(shape.num_elements()) * SizeOf(dtype)));
  std::byte* const memory = buffer.get();
  return Tensor::Borrow(dtype, shape, memory,
                        std::make_shared<const DeviceBuffer>(std::move(buffer)));
}

}  // namespace

TensorMaker PinnedTensors(Device* device) {
  // Atomic: copies of the maker share it, and may be called on several threads.
  const auto is_told = std::make_shared<std::atomic<bool>>(false);
  return [device, is_told](DType dtype, const Shape& shape) {
    absl::StatusOr<Tensor> pinned = TryPinnedTensor(device, dtype, shape);
    if (pinned.ok()) return *std::move(pinned);
    if (!is_told->exchange(true)) {
      log::Warning(absl::StrCat("host memory cannot be pinned, ", device->name(),
                                " copies at a fraction of the speed: ", pinned.status().message()));
    }
    return Tensor(dtype, shape);
  };
}

}  // namespace lockstep::worker
