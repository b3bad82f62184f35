#include "ps/shard/read_values.h"

#include <utility>

namespace lockstep::ps {

PullResult ReadValues(const EpochVariables& variables, GlobalStep version,
                      const std::vector<ResolvedPiece>& pieces,
                      absl::FunctionRef<KeptTensor(const ResolvedPiece&)> value_of) {
  PullResult result{version, {}};
  result.pieces.reserve(pieces.size());
  for (const ResolvedPiece& piece : pieces) {
    KeptTensor kept = value_of(piece);
    if (kept.snapshot != nullptr) {
      result.pieces.push_back({.variable = variables.catalog[piece.variable].id,
                               .offset = piece.offset,
                               .size = piece.size,
                               .snapshot = std::move(kept.snapshot)});
      continue;
    }
    std::shared_ptr<const Tensor> value = std::move(kept.tensor);
    if (value->dtype() != piece.type) {
      value = variables.entries[piece.variable]->variable.Narrowed(value, piece.type);
    }
    PulledPiece pulled{variables.catalog[piece.variable].id, piece.offset, piece.size,
                       value->view().bytes()};
    const std::shared_ptr<SharedTable>& shared = variables.entries[piece.variable]->table;
    if (shared != nullptr && value == shared->table->value()) {
      pulled.table = shared;
    } else if (piece.rows.empty()) {
      pulled.bytes = pulled.bytes.subspan(piece.offset, piece.size);
    }
    pulled.owner = std::move(value);
    result.pieces.push_back(std::move(pulled));
  }
  return result;
}

}  // namespace lockstep::ps
