// The answer to a pull, from tensors that hold what it names.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ps/shard/catalog.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// value_of(piece): the whole tensor to read, which is narrowed here where the piece wants half its
// width. Under the shard's lock.
PullResult ReadValues(
    const EpochVariables& variables, GlobalStep version, const std::vector<ResolvedPiece>& pieces,
    absl::FunctionRef<std::shared_ptr<const Tensor>(const ResolvedPiece&)> value_of);

}  // namespace lockstep::ps
