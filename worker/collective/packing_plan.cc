#include "worker/collective/packing_plan.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::worker {

PackingPlan PackingPlan::Unpacked(absl::Span<const TensorSpec> tensors) {
  std::vector<ReductionVector> vectors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    LOCKSTEP_CHECK(tensors[i].shape.has_value());
    const int64_t elements = tensors[i].shape->num_elements();
    vectors.push_back({false, tensors[i].dtype, elements, {{static_cast<int>(i), 0, elements}}});
  }
  return PackingPlan(std::move(vectors));
}

int PackingPlan::num_packs() const {
  return static_cast<int>(std::ranges::count_if(vectors_, &ReductionVector::is_pack));
}

void Pack(const ReductionVector& vector, absl::Span<const TensorView> tensors,
          const MutableTensorView& pack) {
  LOCKSTEP_CHECK(pack.dtype == vector.dtype && pack.num_elements() == vector.elements);
  const size_t size = SizeOf(vector.dtype);
  auto* to = static_cast<std::byte*>(pack.data);
  for (const PackedSegment& segment : vector.segments) {
    const TensorView& tensor = tensors[segment.tensor];
    LOCKSTEP_CHECK(tensor.dtype == vector.dtype);
    LOCKSTEP_CHECK(segment.first + segment.count <= tensor.num_elements());
    const size_t bytes = segment.count * size;
    if (bytes == 0) continue;
    std::memcpy(to, static_cast<const std::byte*>(tensor.data) + segment.first * size, bytes);
    to += bytes;
  }
}

void Unpack(const ReductionVector& vector, const TensorView& pack,
            absl::Span<const MutableTensorView> tensors) {
  LOCKSTEP_CHECK(pack.dtype == vector.dtype && pack.num_elements() == vector.elements);
  const size_t size = SizeOf(vector.dtype);
  const auto* from = static_cast<const std::byte*>(pack.data);
  for (const PackedSegment& segment : vector.segments) {
    const MutableTensorView& tensor = tensors[segment.tensor];
    LOCKSTEP_CHECK(tensor.dtype == vector.dtype);
    LOCKSTEP_CHECK(segment.first + segment.count <= tensor.num_elements());
    const size_t bytes = segment.count * size;
    if (bytes == 0) continue;
    std::memcpy(static_cast<std::byte*>(tensor.data) + segment.first * size, from, bytes);
    from += bytes;
  }
}

absl::Status CheckShapesAreKnown(absl::Span<const TensorSpec> tensors) {
  for (const TensorSpec& tensor : tensors) {
    if (tensor.shape.has_value()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Shape is unknown for node ", tensor.name,
        ". Remedy: give it a shape, or reduce it by reduction_to_one, which needs none"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
