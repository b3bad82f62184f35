// From the gradients of a step to the variable's next value: sum, mean, optimizer.
#pragma once

#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "ps/accumulator/dense_accumulator.h"
#include "ps/accumulator/sparse_accumulator.h"
#include "ps/step/step_machine.h"
#include "ps/variable/variable.h"

namespace lockstep::ps {

// The value of version step + 1, not yet published. The gradients go through the accumulator in
// their order; the mean of all of them changes a trained variable by the rule and becomes the value
// of a statistic. Changes the variable's slots and the accumulator; takes no lock: the caller owns
// both for as long as the variable is closing. `scalars` are the rule's at this step.
NextValue ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                           absl::Span<const float> scalars, Variable* variable,
                           DenseAccumulator* accumulator);

// The same for a variable whose gradients are sparse; they are held packed (packed_rows.h), and
// their indices are rows of the variable (CHECK). What comes out several times is summed by row
// first, except for a rule that takes it as it is.
NextValue ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                           absl::Span<const float> scalars, Variable* variable,
                           SparseAccumulator* accumulator);

}  // namespace lockstep::ps
