#include "ps/shard/copied_values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {
namespace {

// As elements of a type of half the width, some at a time. The piece may begin and end inside one.
void CopyNarrowed(const ResolvedPiece& piece, const TensorSnapshot& snapshot, std::byte* to) {
  constexpr size_t kElementsAtATime = 4096;
  std::array<float, kElementsAtATime> wide;
  std::array<uint16_t, kElementsAtATime> narrow;
  const uint64_t end = piece.offset + piece.size;
  size_t count = 0;
  for (uint64_t first = piece.offset / sizeof(uint16_t); first * sizeof(uint16_t) < end;
       first += count) {
    const uint64_t begin_byte = first * sizeof(uint16_t);
    count = std::min<uint64_t>(kElementsAtATime, (end - begin_byte + 1) / sizeof(uint16_t));
    const std::span<float> elements = std::span(wide).first(count);
    snapshot.CopyBytes(first * sizeof(float), std::as_writable_bytes(elements));
    Narrow(elements, piece.type, narrow.data());
    const uint64_t from = std::max(piece.offset, begin_byte);
    const uint64_t until = std::min(end, begin_byte + count * sizeof(uint16_t));
    std::memcpy(to + (from - piece.offset),
                reinterpret_cast<const std::byte*>(narrow.data()) + (from - begin_byte),
                until - from);
  }
}

void CopySnapshot(const ResolvedPiece& piece, const TensorSnapshot& snapshot,
                  std::span<std::byte> to) {
  if (!piece.rows.empty()) {
    snapshot.CopyRows(piece.rows, piece.size / piece.rows.size(), to.data());
  } else if (piece.type == snapshot.dtype()) {
    snapshot.CopyBytes(piece.offset, to);
  } else {
    CopyNarrowed(piece, snapshot, to.data());
  }
}

bool CopyPiece(const ResolvedPiece& piece, const PulledPiece& pulled, GlobalStep version,
               std::span<std::byte> to) {
  if (pulled.snapshot != nullptr) {
    CopySnapshot(piece, *pulled.snapshot, to);
    return true;
  }
  if (pulled.is_to_copy) {
    std::memcpy(to.data(), pulled.bytes.data(), to.size());
    return true;
  }
  if (pulled.table == nullptr) {
    GatherRows(pulled.bytes.data(), piece.size / piece.rows.size(), piece.rows, to.data());
    return true;
  }
  absl::ReaderMutexLock lock(&pulled.table->mutex);
  const Table& table = *pulled.table->table;
  if (piece.rows.empty()) return table.CopyBytes(version, piece.offset, to);
  return table.CopyRows(version, piece.rows, to.data());
}

// `result` has the whole value for each piece that names rows, or is of a table or a snapshot.
// Replaces it by a copy of what the piece names, so that a reply keeps no more than that, and the
// table may change while it travels. UNAVAILABLE: the rows of that version are no longer kept;
// RESOURCE_EXHAUSTED: there is no memory.
absl::Status CopyOut(absl::Span<const ResolvedPiece> pieces, PullResult* result) {
  int64_t total = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (IsCopied(pieces[i], result->pieces[i])) total += static_cast<int64_t>(pieces[i].size);
  }
  std::optional<Tensor> made = Tensor::TryMake(DType::kUInt8, Shape({total}));
  if (!made.has_value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for ", total, " bytes of pulled values. Pull again"));
  }
  const auto copies = std::make_shared<Tensor>(*std::move(made));
  std::span<std::byte> left = copies->view().bytes();
  for (size_t i = 0; i < pieces.size(); ++i) {
    PulledPiece& pulled = result->pieces[i];
    if (!IsCopied(pieces[i], pulled)) continue;
    const std::span<std::byte> copy = left.first(pieces[i].size);
    if (!CopyPiece(pieces[i], pulled, result->version, copy)) {
      return absl::UnavailableError(
          absl::StrCat("variable ", pulled.variable.value(), ": version ", result->version.value(),
                       " was changed before it could be copied. Pull again"));
    }
    pulled.bytes = copy;
    pulled.owner = copies;
    pulled.table = nullptr;
    pulled.snapshot = nullptr;
    pulled.is_to_copy = false;
    left = left.subspan(copy.size());
  }
  return absl::OkStatus();
}

}  // namespace

bool IsCopied(const ResolvedPiece& piece, const PulledPiece& pulled) {
  return !piece.rows.empty() || pulled.is_to_copy || pulled.table != nullptr ||
         pulled.snapshot != nullptr;
}

Callback<PullResult> AfterCopying(std::shared_ptr<const std::vector<ResolvedPiece>> pieces,
                                  Callback<PullResult> done) {
  return [pieces = std::move(pieces),
          done = std::move(done)](absl::StatusOr<PullResult> result) mutable {
    absl::Status copied;
    if (result.ok() && !result->by_reference) copied = CopyOut(*pieces, &*result);
    done(copied.ok() ? std::move(result) : copied);
  };
}

}  // namespace lockstep::ps
