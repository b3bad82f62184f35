// How an optimizer changes a variable: TensorFlow's formulas in TensorFlow's order of operations,
// so that results agree to the last bit in float32. A rule keeps no state: slots and scalars belong
// to the caller. Thread-safe.
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

// One application of the mean of some gradients to one variable. float32 or float64, one dtype,
// except where it says otherwise, and one number of elements throughout, but for the gradients'.
struct Update {
  TensorView old_value;
  // The mean is their sum, in this order, over `divisor` (TakeMean). At least one; one gradient
  // with divisor 1 is its own mean. Those of a float32 variable may be float16 or bfloat16, too.
  absl::Span<const TensorView> gradients;
  // The variable's element that each gradient begins with, where they hold those of `range` alone.
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
  // The new value is too large to be found in a cache by who reads it: it is written around them.
  bool bypasses_caches = false;
  // Of a float32 variable: gets the new value once more, as float16 or bfloat16 (Narrow in
  // half_copy.h), while that is at hand. Without memory: not wanted.
  MutableTensorView narrow_value;
};

// The mean of the gradients in this range, in the dtype of the value.
void TakeMean(const Update& update, ElementRange range, void* mean);
// Where narrow_value is wanted: writes this range of it, of which `values` are the new values.
void WriteNarrow(const Update& update, ElementRange range, const void* values);

// Elements: whole lines of memory, whatever the dtype, and whole vectors of any kind.
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

  // TensorFlow's sparse kernel, which rounds in places otherwise than the dense one.
  virtual void ApplyRows(const RowUpdate& update) const = 0;
  // Whether ApplyRows leaves every row of value and slots alone that the gradient does not name.
  virtual bool TouchesOnlyRows() const { return true; }
  // Whether a row's gradients are applied one after the other, not as their sum.
  virtual bool TakesRepeatedRows() const { return false; }

  // Once per step, after all variables have been updated.
  virtual void AdvanceScalars(absl::Span<float> /*scalars*/) const {}
};

// The initial values of the rule's scalars.
std::vector<float> InitialScalars(const UpdateRule& rule);

}  // namespace lockstep
