// The tensors of a shard's state, and the pieces of them that a message names.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/shard/orders.h"
#include "ps/shard/state_tensor.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// Of each variable that the shard keeps the value, then the slots.
std::vector<StateTensor> StateTensorsOf(const EpochVariables& variables);

// `total` and the piece's bytes. INVALID_ARGUMENT naming the variable: a range outside its tensors,
// or more bytes than can be counted.
absl::StatusOr<uint64_t> AddPiece(const CatalogEntry& entry, const StoredPiece& piece,
                                  uint64_t total);

// INVALID_ARGUMENT naming the variable, what was expected and what came: unknown, a slot that it
// does not have, a range outside the tensor, a payload of another size, a step that is none,
// another number of scalars.
absl::StatusOr<std::vector<StateRange>> ResolveState(const EpochVariables& variables,
                                                     const std::vector<StateTensor>& tensors,
                                                     const StateOrder& order);

}  // namespace lockstep::ps
