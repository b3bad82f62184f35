// UpdateRule is an optimizer's formula: TensorFlow's, in TensorFlow's order of operations, so that
// results agree to the last bit in float32. A rule keeps no state: slots and scalars belong to the
// caller. Thread-safe.
//
// A new rule is one file: a MakeX(options) function that returns an implementation of UpdateRule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/element_math.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// A tensor that the rule keeps per variable, of the variable's dtype and shape.
struct SlotSpec {
  std::string name;  // TensorFlow's, "momentum"; in checkpoints "<variable>/<name>"
  float initial_value = 0;
  bool starts_as_variable = false;  // as the variable's initial value, not as initial_value
};

// A number that the rule keeps once for all variables; in checkpoints "optimizer/<name>".
struct ScalarSpec {
  std::string name;
  float initial_value = 0;
};

// One application of the mean of some gradients to one variable. All tensors have one dtype,
// float32 or float64, except where a field says otherwise. All but the gradients have the same
// number of elements.
struct Update {
  TensorView old_value;
  // The mean is their sum, in this order, over `divisor` (TakeMean). At least one; one gradient
  // with divisor 1 is its own mean. Those of a float32 variable may be float16 or bfloat16, too.
  absl::Span<const TensorView> gradients;
  // The index of each gradient's first element in the variable, if gradients hold those of `range`
  // alone.
  size_t gradients_begin = 0;
  int divisor = 1;
  MutableTensorView new_value;                // may be the old value's memory
  absl::Span<const MutableTensorView> slots;  // in the order of UpdateRule::slots
  float learning_rate = 0;
  absl::Span<const float> scalars;  // in the order of UpdateRule::scalars
  int64_t version = 0;              // of the new value: the steps made with this one
  // Every rule works element by element: other threads may do other ranges at the same time. Begins
  // at a multiple of kRangeStep. nullopt: all elements.
  std::optional<ElementRange> range;
  // Uses non-temporal stores: the new value is too large to be in a cache when it is read.
  bool bypasses_caches = false;
  // A second copy of a float32 variable's new value, as float16 or bfloat16 (Narrow in
  // half_copy.h), written in the same pass. Without memory: not wanted.
  MutableTensorView narrow_value;
};

// Writes the mean of the gradients in this range to `mean`, in the dtype of the value.
void TakeMean(const Update& update, ElementRange range, void* mean);
// Writes this range of narrow_value, if that is wanted. `values`: the new values of the range.
void WriteNarrow(const Update& update, ElementRange range, const void* values);

// Elements that are whole cache lines, for any dtype, and whole vectors of any kind.
inline constexpr size_t kRangeStep = 64;

// One application of a sparse gradient, in place. A row is all elements of one index of the first
// dimension; `gradient` has one for each of `rows`. Rows are indices of the variable (CHECK), in
// ascending order (CHECK). A row comes once (CHECK), except to a rule that TakesRepeatedRows.
struct RowUpdate {
  MutableTensorView value;
  absl::Span<const int64_t> rows;
  TensorView gradient;
  absl::Span<const MutableTensorView> slots;
  float learning_rate = 0;
  absl::Span<const float> scalars;
  int64_t version = 0;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // "sgd", "momentum", "adam".
  virtual absl::string_view name() const = 0;
  virtual absl::Span<const SlotSpec> slots() const { return {}; }
  virtual absl::Span<const ScalarSpec> scalars() const { return {}; }

  virtual void Apply(const Update& update) const = 0;

  // Follows TensorFlow's sparse kernel, which in places rounds differently from the dense one.
  virtual void ApplyRows(const RowUpdate& update) const = 0;
  // Returns whether ApplyRows changes only those rows of value and slots that the gradient names.
  virtual bool TouchesOnlyRows() const { return true; }
  // Returns whether a row's gradients are applied one after the other, not as their sum.
  virtual bool TakesRepeatedRows() const { return false; }

  // Called once per step, after all variables have been updated.
  virtual void AdvanceScalars(absl::Span<float> /*scalars*/) const {}
};

// The initial values of the rule's scalars.
std::vector<float> InitialScalars(const UpdateRule& rule);

}  // namespace lockstep
