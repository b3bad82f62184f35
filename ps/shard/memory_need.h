// What a shard takes of its process's memory for certain, before it takes any.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"
#include "ps/shard/memory_claims.h"
#include "ps/shard/shard.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// Claims the bytes of the variables' values, in all versions that there are in each step, and of
// their slots; of the gradients that a step needs, where all come in messages (which workers share
// memory is known only when they call), of large ones those of one variable; of a primary with a
// copy, of the means that it sends, and of a copy, of those that it gets. RESOURCE_EXHAUSTED, with
// the exit code of a bad configuration, naming the variable and the bytes: more than
// `options.memory` has, or than can be counted. Null where there is no `options.memory`.
absl::StatusOr<MemoryClaim> ClaimMemory(const EpochVariables& variables, RuleOfEntry rule_of,
                                        const ShardOptions& options, bool is_copy);

// With any contents. RESOURCE_EXHAUSTED as above, naming the variable, the bytes and `what` (such
// as "values"): the system has no such memory.
absl::StatusOr<Tensor> MakeTensor(const CatalogEntry& entry, absl::string_view what);

}  // namespace lockstep::ps
