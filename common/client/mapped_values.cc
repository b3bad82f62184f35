#include "common/client/mapped_values.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/half_width.h"
#include "common/tensor/non_temporal_copy.h"

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

bool LiesIn(std::span<const std::byte> memory, uint64_t place, uint64_t size) {
  return size <= memory.size() && place <= memory.size() - size;
}

// A ps with so much memory for its values, three times what they take, has more of them than a
// cache keeps until they are read.
constexpr uint64_t kCachedMemory = 3 * (uint64_t{16} << 20);

void CopyValue(std::span<const std::byte> from, std::span<std::byte> to, uint64_t memory_bytes) {
  if (memory_bytes > kCachedMemory && to.size() >= kStreamedBytes) {
    NonTemporalCopy(to.data(), from.data(), to.size());
  } else {
    std::memcpy(to.data(), from.data(), to.size());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<PulledValues>> MappedValues::Read(
    const PullRequest& request, PullReply header, std::shared_ptr<const shm::Segment> memory) {
  if (header.pieces_size() != request.pieces_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "asked for ", request.pieces_size(), " pieces, answered with ", header.pieces_size()));
  }
  std::unique_ptr<MappedValues> values(new MappedValues);
  values->memory_ = std::move(memory);
  for (int i = 0; i < header.pieces_size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(values->Add(request.pieces(i), header.pieces(i)));
  }
  values->header_ = std::move(header);
  return values;
}

absl::Status MappedValues::Add(const PullPiece& asked, const PullPiece& answered) {
  const std::span<const std::byte> bytes = memory_->bytes();
  uint64_t read = answered.size();
  bool fits = true;
  if (asked.rows_size() > 0) {
    const auto num_rows = static_cast<uint64_t>(asked.rows_size());
    const auto [lowest, highest] = std::ranges::minmax(asked.rows());
    const std::optional<int64_t> end = CheckedAdd(highest, 1);
    const auto row_bytes = static_cast<int64_t>(answered.size() / num_rows);
    const auto last = end ? CheckedMultiply(*end, row_bytes) : std::nullopt;
    fits = lowest >= 0 && last.has_value() && answered.size() % num_rows == 0;
    if (fits) read = static_cast<uint64_t>(*last);
  }
  fits = fits && LiesIn(bytes, answered.place(), read) &&
         answered.stamp() % alignof(SeqLock) == 0 &&
         LiesIn(bytes, answered.stamp(), SeqLock::kRoom);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", answered.variable(), ": ", answered.size(), " bytes, of ",
                     asked.rows_size(), " rows, at ", answered.place(), ", stamp at ",
                     answered.stamp(), " in a memory of ", bytes.size()));
  }
  pieces_.push_back(bytes.subspan(answered.place(), read));
  rows_.emplace_back(asked.rows().begin(), asked.rows().end());
  seq_locks_.push_back(reinterpret_cast<const SeqLock*>(bytes.data() + answered.stamp()));
  return absl::OkStatus();
}

absl::Status MappedValues::CopyTo(std::span<const std::span<std::byte>> targets) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckTargets(header_, targets));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].empty()) continue;
    if (rows_[i].empty()) {
      CopyValue(pieces_[i], targets[i], memory_->bytes().size());
    } else {
      GatherRows(pieces_[i].data(), targets[i].size() / rows_[i].size(), rows_[i],
                 targets[i].data());
    }
  }
  FlushStreams();
  for (const SeqLock* seq_lock : seq_locks_) {
    if (seq_lock->StillHolds(header_.version())) continue;
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
