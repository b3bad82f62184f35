// A gradient of one variable as it is held until it is applied.
#pragma once

#include <memory>

#include "common/tensor/indexed_slices.h"
#include "common/tensor/tensor.h"
#include "common/update/gradient_parts.h"

namespace lockstep {

struct Gradient {
  // Of a dense variable: its elements. Of a sparse one: slices, or, without `indices`, slices
  // packed with their indices as bytes (common/tensor/packed_rows.h).
  Tensor value;
  // Of a sparse variable: the rows of the slices.
  Tensor indices = {};
  // Of a dense variable, in place of `value`: the messages in which it was received.
  std::shared_ptr<GradientParts> parts = nullptr;
};

// A dense gradient where it lies: in one piece, or, where there are parts, in these.
struct GradientSource {
  TensorView view;
  std::shared_ptr<GradientParts> parts;
};

GradientSource SourceOf(const Gradient& gradient);

// A gradient of a sparse variable of this type and shape.
IndexedSlicesView SlicesOf(const Gradient& gradient, DType dtype, const Shape& shape);

}  // namespace lockstep
