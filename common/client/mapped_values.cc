#include "common/client/mapped_values.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<PulledValues>> MappedValues::Read(
    PullReply header, std::shared_ptr<const shm::Segment> memory) {
  std::unique_ptr<MappedValues> values(new MappedValues);
  const std::span<const std::byte> bytes = memory->bytes();
  for (const PullPiece& piece : header.pieces()) {
    const bool is_inside =
        piece.place() <= bytes.size() && piece.size() <= bytes.size() - piece.place() &&
        piece.stamp() % alignof(Stamp) == 0 && piece.stamp() <= bytes.size() - Stamp::kRoom;
    if (!is_inside) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable ", piece.variable(), ": ", piece.size(), " bytes at ", piece.place(),
          ", stamp at ", piece.stamp(), " in a memory of ", bytes.size()));
    }
    values->pieces_.push_back(bytes.subspan(piece.place(), piece.size()));
    values->stamps_.push_back(reinterpret_cast<const Stamp*>(bytes.data() + piece.stamp()));
  }
  values->header_ = std::move(header);
  values->memory_ = std::move(memory);
  return values;
}

absl::Status MappedValues::CopyTo(std::span<const std::span<std::byte>> targets) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckTargets(header_, targets));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].empty()) continue;
    std::memcpy(targets[i].data(), pieces_[i].data(), targets[i].size());
  }
  for (const Stamp* stamp : stamps_) {
    if (stamp->StillHolds(header_.version())) continue;
    return absl::AbortedError(
        absl::StrCat("version ", header_.version(), " was written over while it was being read"));
  }
  return absl::OkStatus();
}

absl::Status CheckTargets(const PullReply& header, std::span<const std::span<std::byte>> targets) {
  if (targets.size() != static_cast<size_t>(header.pieces_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("pulled ", header.pieces_size(), " pieces, targets for ", targets.size()));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    const PullPiece& piece = header.pieces(static_cast<int>(i));
    if (piece.size() == targets[i].size() || targets[i].data() == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat("variable ", piece.variable(), ": pulled ",
                                                   piece.size(), " bytes, target of ",
                                                   targets[i].size()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
