// Copies of pulled values, where a reply may not refer to what they are in: rows, tables,
// snapshots, and versions of which a reply keeps no more than it shows.
#pragma once

#include <memory>
#include <vector>

#include "common/base/callback.h"
#include "ps/shard/calls.h"
#include "ps/shard/catalog.h"

namespace lockstep::ps {

// Whether `pulled`, which answers `piece`, is to be copied.
bool IsCopied(const ResolvedPiece& piece, const PulledPiece& pulled);

// Returns a callback that calls `done` with the result after copying these pieces of it, on the
// thread that answers, without the shard's lock. UNAVAILABLE: the rows of that version are no
// longer kept; RESOURCE_EXHAUSTED: there is no memory.
Callback<PullResult> AfterCopying(std::shared_ptr<const std::vector<ResolvedPiece>> pieces,
                                  Callback<PullResult> done);

}  // namespace lockstep::ps
