#include "worker/device/cuda/pinned_ring.h"

#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {

absl::StatusOr<std::unique_ptr<PinnedRing>> PinnedRing::Create(Device* device) {
  auto ring = std::make_unique<PinnedRing>();
  for (Piece& piece : ring->pieces_) {
    LOCKSTEP_ASSIGN_OR_RETURN(piece.memory, device->AllocatePinned(kPieceBytes));
    LOCKSTEP_ASSIGN_OR_RETURN(piece.is_free, device->CreateEvent());
  }
  return ring;
}

absl::StatusOr<PinnedRing::Piece*> PinnedRing::Take() {
  Piece* const piece = &pieces_[static_cast<size_t>(next_)];
  LOCKSTEP_RETURN_IF_ERROR(piece->is_free->Wait());
  next_ = (next_ + 1) % kPieces;
  return piece;
}

}  // namespace lockstep::worker::cuda
