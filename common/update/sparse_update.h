// From the gradients of a step to the next value of a variable whose gradients are sparse: the
// touched rows are summed, averaged and changed.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/row_means.h"
#include "common/update/variable.h"

namespace lockstep {

// Calls work(begin, end) for ranges that cover [0, count), on any threads, and returns when all
// have been worked on. Each range begins at a multiple of `step`; where `step` is `count` or more
// there is one.
using RunRanges = absl::FunctionRef<void(size_t count, size_t step,
                                         absl::FunctionRef<void(size_t, size_t)> work)>;

// The value of version step + 1. The mean of all gradients changes the variable by the rule. What
// comes out of the mean several times (sparse_sum.h) is summed by row first, except for a rule that
// takes it as it is. A table (table.h) is changed in place; where every gradient names each row
// once, ascending, that is one pass over the rows. Takes no lock: the caller owns the variable and
// its slots until the value is published.
class SparseUpdate {
 public:
  // `scalars` are the rule's at this step.
  SparseUpdate(GlobalStep step, float learning_rate, const UpdateRule& rule,
               absl::Span<const float> scalars, Variable* variable)
      : step_(step),
        learning_rate_(learning_rate),
        rule_(rule),
        scalars_(scalars),
        variable_(variable) {}

  // At least one gradient (CHECK), whose indices are rows of the variable (CHECK). `run` may spread
  // rows over threads. The value is not yet published.
  NextValue Make(absl::Span<const IndexedSlicesView> gradients, RunRanges run);

 private:
  // In the order in which ApplyRows takes rows.
  IndexedSlices RowsOf(IndexedSlices mean) const;
  RowUpdate UpdateOf(const MutableTensorView& value, absl::Span<const int64_t> rows,
                     const TensorView& gradient) const;
  void ChangeTable(const RowMeans& means, RunRanges run);
  void ChangeTable(const IndexedSlices& mean);

  const GlobalStep step_;
  const float learning_rate_;
  const UpdateRule& rule_;
  const absl::Span<const float> scalars_;
  Variable* const variable_;
};

}  // namespace lockstep
