#include "common/transport/ps_methods.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

absl::Status CheckTensors(const PullReply& header, const ReceivedTensors& tensors) {
  if (tensors.lifetime() == ReceivedTensors::Lifetime::kBorrowed) return absl::OkStatus();
  uint64_t expected = 0;
  for (const PullPiece& piece : header.pieces()) expected += piece.size();
  if (expected == tensors.num_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pieces of ", expected, " bytes, payload of ", tensors.num_bytes()));
}

}  // namespace lockstep
