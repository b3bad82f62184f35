// Computes a lower bound of the host memory that a worker takes for the variables of its job.
#pragma once

#include <cstdint>

#include "common/base/memory_room.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

struct VariableUse {
  // Towers that hold variables of their own: each of a replicated or asynchronous job. In other
  // jobs all towers of a worker share them.
  uint64_t holders = 1;
  // Towers may read values in the memory of a ps, unless the variable is split. Ignored for a
  // replicated job.
  bool values_in_place = false;
  // Of a replicated job, whose towers apply the updates; otherwise null.
  const OptimizerRules* rules = nullptr;
};

// For CheckRoomFor. The bytes are a lower bound: they count the tensors of whole variables that are
// in memory together in each step. Some memory depends on batches, hosts or the moment, and is not
// counted: rows of tables, messages, versions that others still read, memory of a tower's passes.
// The error names the largest variable.
MemoryNeed NeedOfVariables(const VariableLayout& layout, const VariableUse& use);

}  // namespace lockstep::worker
