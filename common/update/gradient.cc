#include "common/update/gradient.h"

#include "common/tensor/packed_rows.h"

namespace lockstep {

GradientSource SourceOf(const Gradient& gradient) {
  if (gradient.parts == nullptr) return {gradient.value.view(), nullptr};
  return {gradient.parts->view(), gradient.parts};
}

IndexedSlicesView SlicesOf(const Gradient& gradient, DType dtype, const Shape& shape) {
  if (gradient.indices.num_elements() > 0) {
    const auto indices = gradient.indices.as<int64_t>();
    return {{indices.data(), indices.size()}, gradient.value.view()};
  }
  return ViewPacked(gradient.value.view().bytes(), dtype, shape);
}

}  // namespace lockstep
