// Rows of sparse variables on their way out: they are copied, so that a pull costs what it brings,
// however large the variable is, and their table may change while they travel.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ps/shard/catalog.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

// Whether what these pieces bring may have to be copied.
bool MayBeCopied(absl::Span<const ResolvedPiece> pieces);

// `result` has the whole value for each piece that names rows or is of a table: puts a copy of what
// the piece wants in its place. `pieces` are those of the result. UNAVAILABLE: the rows of that
// version are no longer kept.
absl::Status CopyOut(absl::Span<const ResolvedPiece> pieces, PullResult* result);

}  // namespace lockstep::ps
