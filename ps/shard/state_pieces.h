// The tensors of a shard's state, and the pieces of them that a message names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ps/shard/calls.h"
#include "ps/shard/state_tensor.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// Visits the tensors of the state, in their order: of each variable that the shard keeps the value
// (no slot), then the slots.
void ForEachStateTensor(const EpochVariables& variables,
                        absl::FunctionRef<void(size_t variable, std::optional<size_t> slot)> visit);

// The same as messages and errors name them.
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
                                                     const StateArguments& arguments);

}  // namespace lockstep::ps
