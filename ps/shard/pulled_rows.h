// Rows of sparse variables on their way out: a pull of rows costs what the rows weigh, however
// large the variable is.
#pragma once

#include "absl/types/span.h"
#include "ps/shard/catalog.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

bool NamesRows(absl::Span<const ResolvedPiece> pieces);

// `result` has the value of the whole variable for each piece that names rows: puts a copy of these
// rows, in their order, in its place. `pieces` are those of the result.
void CopyOutRows(absl::Span<const ResolvedPiece> pieces, PullResult* result);

}  // namespace lockstep::ps
