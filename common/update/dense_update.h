// From the gradients of a step to the next value of a variable whose gradients are dense: sum,
// mean, optimizer, in one pass over memory that is cut into ranges for any threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/optimizer/update_rule.h"
#include "common/update/gradient.h"
#include "common/update/variable.h"

namespace lockstep {

// The value of version step + 1. The mean of all gradients changes a trained variable by the rule
// and becomes the value of a statistic. Changes the variable's slots and takes no lock: the caller
// owns the variable until Finish, and leaves all that it names as it is.
class DenseUpdate {
 public:
  using GradientSources = absl::InlinedVector<GradientSource, 4>;

  // Worth waking a thread for.
  static constexpr size_t kRangeBytes = size_t{256} << 10;
  // Elements of the ranges, the last of which may be shorter.
  static size_t RangeElements(DType dtype) { return kRangeBytes / SizeOf(dtype); }
  static size_t NumRanges(uint64_t bytes) { return (bytes + kRangeBytes - 1) / kRangeBytes; }

  // `scalars` are the rule's at this step.
  DenseUpdate(GlobalStep step, float learning_rate, const UpdateRule& rule,
              absl::Span<const float> scalars, Variable* variable);

  // All gradients, in the order of summation, and the divisor of their sum. Once.
  void SetGradients(GradientSources gradients, int divisor);

  // Writes the mean of the gradients into `mean`, a tensor like the variable, and changes the
  // variable from there. Before the first range is made.
  void KeepMean(const MutableTensorView& mean) { mean_ = mean; }

  uint64_t num_bytes() const { return variable_->num_bytes(); }
  // What is left to be made of all; at least one, which may be empty.
  size_t num_ranges() const;
  // After SetGradients, once for each range that is left, from any threads.
  void Make(size_t range);
  // When all have been made: the value, not yet published.
  NextValue Finish();

  // Before SetGradients: a range of which all gradients are whole may be made by who claims it.
  // False: it has been claimed. Guarded by the caller's lock.
  bool ClaimEarly(size_t range);
  bool IsEarly(size_t range) const { return !is_early_.empty() && is_early_[range]; }
  // A range that the caller has claimed, from the gradients that SetGradients will bring, in
  // their order.
  // From any threads.
  void MakeEarly(size_t range, absl::Span<const GradientSource> gradients);
  // The value in the making, and where in it a range is.
  NextValue Unfinished() const;
  ByteRange BytesOf(size_t range) const;

 private:
  using Views = absl::InlinedVector<TensorView, 4>;

  ElementRange ElementsOf(size_t range) const;
  void MakeRange(ElementRange range, absl::Span<const GradientSource> gradients, int divisor);
  // By way of copies that stay in the nearest cache.
  void MakeFromParts(ElementRange range, absl::Span<const GradientSource> gradients, int divisor);
  void Apply(ElementRange range, const Views& gradients, size_t gradients_begin, int divisor);

  GlobalStep step_;
  float learning_rate_;
  const UpdateRule* rule_;
  absl::Span<const float> scalars_;
  Variable* variable_;
  std::shared_ptr<ValueBuffer> next_;
  std::shared_ptr<ValueBuffer> narrow_;
  std::vector<bool> is_early_;  // by range; empty: none
  std::vector<size_t> ranges_;  // that are left, where some were made early
  GradientSources gradients_;
  int divisor_ = 1;
  MutableTensorView mean_;
};

}  // namespace lockstep
