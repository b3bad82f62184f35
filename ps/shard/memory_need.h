// Claims the memory that a shard certainly needs, before it allocates any.
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

// Claims the bytes of values, in all versions that exist in each step, of slots, gradients and
// means. Gradients are those that a step needs, if all come in messages (workers that share memory
// are known only when they call); of large gradients those of one variable. Means are those that a
// primary sends to its copy, or that a copy gets. RESOURCE_EXHAUSTED, with the exit code of a bad
// configuration, naming the variable and the bytes: `options.memory` has less, or the sum
// overflows.
absl::StatusOr<ClaimedMemory> ClaimMemory(const EpochVariables& variables, RuleOfEntry rule_of,
                                          const ShardOptions& options, bool is_copy);

// Returns the limit of gradient bytes for a number of replicas: the bytes claimed for gradients,
// and the shard's share of the unclaimed memory, without bytes that may be in flight. `memory`
// outlives the result.
std::function<uint64_t(uint32_t replicas)> GradientLimit(const MemoryClaims* memory,
                                                         const ClaimedMemory& claimed);

// Makes a tensor with any contents. RESOURCE_EXHAUSTED as above, naming the variable, the bytes and
// `what` (such as "values"): the system does not have that memory.
absl::StatusOr<Tensor> MakeTensor(const CatalogEntry& entry, absl::string_view what);

}  // namespace lockstep::ps
