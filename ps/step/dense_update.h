// From the gradients of a step to the next value of a variable whose gradients are dense: sum,
// mean, optimizer, in one pass over memory that is cut into ranges for any threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "ps/accumulator/dense_accumulator.h"
#include "ps/step/step_machine.h"
#include "ps/variable/variable.h"

namespace lockstep::ps {

// The value of version step + 1. The mean of all gradients changes a trained variable by the rule
// and becomes the value of a statistic. Changes the variable's slots and the accumulator, takes no
// lock: the caller owns both for as long as the variable is closing, and leaves all that it names
// as it is until Finish.
class DenseUpdate {
 public:
  // Worth waking a thread for.
  static constexpr size_t kRangeBytes = size_t{256} << 10;

  // The gradients go through the accumulator in their order. `scalars` are the rule's at this step.
  DenseUpdate(const Closing& closing, const UpdateRule& rule, absl::Span<const float> scalars,
              Variable* variable, DenseAccumulator* accumulator);

  uint64_t num_bytes() const { return variable_->num_bytes(); }
  size_t num_ranges() const;  // at least one, which may be empty
  // Once for each range, from any threads.
  void Make(size_t range);
  // When all have been made: the value, not yet published.
  NextValue Finish();

 private:
  const Closing* closing_;
  const UpdateRule* rule_;
  absl::Span<const float> scalars_;
  Variable* variable_;
  DenseGradients taken_;
  std::unique_ptr<ValueBuffer> next_;
  std::unique_ptr<ValueBuffer> narrow_;
};

}  // namespace lockstep::ps
