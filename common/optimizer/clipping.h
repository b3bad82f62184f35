// Gradient clipping, TensorFlow's formulas, in place. float32 or float64 tensors (CHECK); of a
// sparse gradient its values, repeated rows and all.
#pragma once

#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Every element into [least, most]. A NaN stays one.
void ClipByValue(float least, float most, MutableTensorView tensor);

// Scales the tensor so that its Euclidean norm is at most `limit`. A norm that is not finite leaves
// no number of use: all elements NaN, or NaN and 0 when there was an infinity.
void ClipByNorm(float limit, MutableTensorView tensor);

// Scales all tensors by one factor so that their norm as one vector is at most `limit`, and returns
// the norm from before, rounded to float32 unless one of the tensors is float64. Where that is not
// finite, every element becomes NaN: the error shows.
double ClipByGlobalNorm(float limit, absl::Span<const MutableTensorView> tensors);

enum class ClippingKind {
  kNone,
  kValue,       // each element into [-limit, limit]
  kNorm,        // each tensor to a Euclidean norm of at most `limit`
  kGlobalNorm,  // all tensors, as one vector, to a norm of at most `limit`
};

struct ClippingRule {
  ClippingKind kind = ClippingKind::kNone;
  float limit = 0;
};

// Clips the tensors by one of the functions above.
void Clip(const ClippingRule& rule, absl::Span<const MutableTensorView> tensors);

}  // namespace lockstep
