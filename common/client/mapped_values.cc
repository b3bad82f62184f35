#include "common/client/mapped_values.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"

namespace lockstep {
namespace {

absl::Status CheckNumber(const PullReply& header, size_t num_targets) {
  if (num_targets == static_cast<size_t>(header.pieces_size())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pulled ", header.pieces_size(), " pieces, targets for ", num_targets));
}

absl::Status CheckTarget(const PullPiece& piece, uint64_t bytes) {
  if (piece.size() == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("variable ", piece.variable(), ": pulled ",
                                                 piece.size(), " bytes, target of ", bytes));
}

}  // namespace

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

absl::Status MappedValues::WidenTo(DType wire_type, std::span<const std::span<float>>) const {
  return absl::InvalidArgumentError(
      absl::StrCat("pulled as ", Name(wire_type), ", but answered with places in memory"));
}

absl::Status CheckTargets(const PullReply& header, std::span<const std::span<std::byte>> targets) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumber(header, targets.size()));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].data() == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(CheckTarget(header.pieces(static_cast<int>(i)), targets[i].size()));
  }
  return absl::OkStatus();
}

absl::Status CheckNarrowTargets(const PullReply& header, DType wire_type,
                                std::span<const std::span<float>> targets) {
  if (!IsHalfWidth(wire_type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected bfloat16 or float16, got ", Name(wire_type)));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckNumber(header, targets.size()));
  for (size_t i = 0; i < targets.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckTarget(header.pieces(static_cast<int>(i)), targets[i].size() * SizeOf(wire_type)));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
