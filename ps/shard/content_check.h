// What only the bytes of a push can tell: whether its row indices are rows of the variable, and,
// where that is wanted, whether its values are numbers.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "ps/shard/catalog.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

// `order` has passed Catalog::ResolvePush, which returned `variables`. Reads the bytes of row
// indices, with `refuse_non_finite` all. INVALID_ARGUMENT naming the variable, the slice or element
// and what it is; with `refuse_non_finite` also for a piece that is cut inside an element.
absl::Status CheckContents(const Catalog& catalog, const std::vector<size_t>& variables,
                           const PushOrder& order, bool refuse_non_finite);

}  // namespace lockstep::ps
