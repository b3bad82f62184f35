// The memory that a shard's variables take, known before any of it is asked for: the system would
// rather end a process later than refuse it now.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/tensor.h"
#include "ps/shard/catalog.h"

namespace lockstep::ps {

using RuleOfEntry = absl::FunctionRef<const UpdateRule&(const CatalogEntry&)>;

// Bytes of the variables' values, with the next version that is made beside them, and of their
// slots. FAILED_PRECONDITION naming the variable: more than `available` or than can be counted.
// Without `available` only the latter.
absl::StatusOr<uint64_t> CheckMemoryNeed(const Catalog& catalog, RuleOfEntry rule_of,
                                         std::optional<uint64_t> available);

// With any contents. FAILED_PRECONDITION naming the variable, the bytes and `what` (such as
// "values"): the system has no such memory.
absl::StatusOr<Tensor> MakeTensor(const CatalogEntry& entry, absl::string_view what);

}  // namespace lockstep::ps
