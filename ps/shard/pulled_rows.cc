#include "ps/shard/pulled_rows.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/tensor/gather_rows.h"
#include "ps/shard/shared_table.h"

namespace lockstep::ps {
namespace {

bool IsCopied(const ResolvedPiece& piece, const PulledPiece& pulled) {
  return !piece.rows.empty() || pulled.table != nullptr;
}

bool CopyPiece(const ResolvedPiece& piece, const PulledPiece& pulled, GlobalStep version,
               std::span<std::byte> to) {
  if (pulled.table == nullptr) {
    GatherRows(pulled.bytes.data(), piece.size / piece.rows.size(), piece.rows, to.data());
    return true;
  }
  absl::ReaderMutexLock lock(&pulled.table->mutex);
  const Table& table = *pulled.table->table;
  if (piece.rows.empty()) return table.CopyBytes(version, piece.offset, to);
  return table.CopyRows(version, piece.rows, to.data());
}

}  // namespace

bool MayBeCopied(absl::Span<const ResolvedPiece> pieces) {
  return std::ranges::any_of(pieces, &ResolvedPiece::is_sparse);
}

absl::Status CopyOut(absl::Span<const ResolvedPiece> pieces, PullResult* result) {
  int64_t total = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (IsCopied(pieces[i], result->pieces[i])) total += static_cast<int64_t>(pieces[i].size);
  }
  const auto copies = std::make_shared<Tensor>(DType::kUInt8, Shape({total}));
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
    left = left.subspan(copy.size());
  }
  return absl::OkStatus();
}

}  // namespace lockstep::ps
