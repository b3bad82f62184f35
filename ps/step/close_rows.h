// From the gradients of a step to the next value of a variable whose gradients are sparse: the
// touched rows are summed, averaged and changed.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "common/update/variable.h"
#include "ps/accumulator/sparse_accumulator.h"
#include "ps/step/step_machine.h"

namespace lockstep::ps {

// Calls work(begin, end) for ranges that cover [0, count), on any threads, and returns when all
// have been worked on. Each range begins at a multiple of `step`; where `step` is `count` or more
// there is one.
using RunRanges = absl::FunctionRef<void(size_t count, size_t step,
                                         absl::FunctionRef<void(size_t, size_t)> work)>;

// The value of version step + 1, not yet published, of a variable whose gradients are sparse; they
// are held packed (packed_rows.h), and their indices are rows of the variable (CHECK). They go
// through the accumulator in their order, and their mean changes the variable by the rule. What
// comes out several times is summed by row first, except for a rule that takes it as it is. A table
// (common/update/table.h) is changed in place; where every gradient names each row once, ascending,
// that is one pass over the rows, which `run` may spread over threads. Changes the variable's slots
// and the accumulator; takes no lock: the caller owns both while the variable is applied.
// `scalars` are the rule's at this step.
NextValue ComputeNextValue(const TakenGradients& taken, const UpdateRule& rule,
                           absl::Span<const float> scalars, RunRanges run, Variable* variable,
                           SparseAccumulator* accumulator);

}  // namespace lockstep::ps
