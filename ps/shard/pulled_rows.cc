#include "ps/shard/pulled_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace lockstep::ps {

bool NamesRows(absl::Span<const ResolvedPiece> pieces) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [](const ResolvedPiece& piece) { return !piece.rows.empty(); });
}

void CopyOutRows(absl::Span<const ResolvedPiece> pieces, PullResult* result) {
  int64_t total = 0;
  for (const ResolvedPiece& piece : pieces) {
    if (!piece.rows.empty()) total += static_cast<int64_t>(piece.size);
  }
  const auto copies = std::make_shared<Tensor>(DType::kUInt8, Shape({total}));
  auto* to = static_cast<std::byte*>(copies->data());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<int64_t>& rows = pieces[i].rows;
    if (rows.empty()) continue;
    PulledPiece& pulled = result->pieces[i];
    const std::byte* const from = pulled.bytes.data();
    const uint64_t row_bytes = pieces[i].size / rows.size();
    pulled.bytes = {to, pieces[i].size};
    for (const int64_t row : rows) {
      if (row_bytes > 0) std::memcpy(to, from + row * row_bytes, row_bytes);
      to += row_bytes;
    }
    pulled.owner = copies;
  }
}

}  // namespace lockstep::ps
