// Pinned buffers of the host that take turns: one is filled while a GPU copies from the others. For
// memory that the driver does not copy from directly, as values of a ps that cannot be registered.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::worker::cuda {

// Of one stream: used by its thread. Ends when none of its buffers is copied from.
class PinnedRing {
 public:
  // What a driver puts into its queue of commands gains nothing from a ring.
  static constexpr size_t kLeastBytes = size_t{1} << 16;
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr int kPieces = 4;

  struct Piece {
    DeviceBuffer memory;             // kPieceBytes
    std::unique_ptr<Event> is_free;  // recorded after each copy from it
  };

  // `device` outlives it. RESOURCE_EXHAUSTED: the host cannot pin so much.
  static absl::StatusOr<std::unique_ptr<PinnedRing>> Create(Device* device);

  // The next piece, once it is free. The device's status().
  absl::StatusOr<Piece*> Take();

 private:
  std::array<Piece, kPieces> pieces_;
  int next_ = 0;
};

}  // namespace lockstep::worker::cuda
