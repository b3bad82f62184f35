// What a shard takes of its process's memory for certain, before it takes any.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"
#include "ps/shard/memory_claims.h"
#include "ps/shard/shard.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

struct ClaimedMemory {
  MemoryClaim claim;       // null where there is no ShardOptions::memory
  uint64_t bytes = 0;      // all
  uint64_t gradients = 0;  // of these, those of gradients that wait
};

// Claims the bytes of the variables' values, in all versions that there are in each step, and of
// their slots; of the gradients that a step needs, where all come in messages (which workers share
// memory is known only when they call), of large ones those of one variable; of a primary with a
// copy, of the means that it sends, and of a copy, of those that it gets. RESOURCE_EXHAUSTED, with
// the exit code of a bad configuration, naming the variable and the bytes: more than
// `options.memory` has, or than can be counted.
absl::StatusOr<ClaimedMemory> ClaimMemory(const EpochVariables& variables, RuleOfEntry rule_of,
                                          const ShardOptions& options, bool is_copy);

// The most bytes that gradients of a job with so many replicas may take: those that are claimed for
// them, and the shard's part of the memory that is not claimed. Bytes that may be in flight are not
// included. `memory` outlives it.
std::function<uint64_t(uint32_t replicas)> GradientLimit(const MemoryClaims* memory,
                                                         const ClaimedMemory& claimed);

// With any contents. RESOURCE_EXHAUSTED as above, naming the variable, the bytes and `what` (such
// as "values"): the system has no such memory.
absl::StatusOr<Tensor> MakeTensor(const CatalogEntry& entry, absl::string_view what);

}  // namespace lockstep::ps
