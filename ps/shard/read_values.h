// The answer to a pull, from tensors that hold what it names.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "ps/shard/catalog.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// value_of(piece): the whole tensor to read, which is narrowed here where the piece wants half its
// width. Where it is a snapshot, or a table, who answers copies out of it, without the lock. Under
// the shard's lock.
PullResult ReadValues(const EpochVariables& variables, GlobalStep version,
                      const std::vector<ResolvedPiece>& pieces,
                      absl::FunctionRef<KeptTensor(const ResolvedPiece&)> value_of);

}  // namespace lockstep::ps
