#include "worker/collective/reduction_layout.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

size_t Aligned(size_t offset) {
  return (offset + Tensor::kAlignment - 1) / Tensor::kAlignment * Tensor::kAlignment;
}

absl::Status CheckShares(const TensorSpec& tensor, const ReductionVector& vector) {
  if (tensor.shares == 0) return absl::OkStatus();
  if (!vector.is_pack && tensor.shape->num_elements() % tensor.shares == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "gathered tensor ", tensor.name, ": expected a vector of its own that divides into ",
      tensor.shares, " shares, got ", tensor.shape->num_elements(), " elements",
      vector.is_pack ? " in a pack" : ""));
}

}  // namespace

absl::StatusOr<ReductionLayout> ReductionLayout::Create(absl::Span<const TensorSpec> tensors,
                                                        const PackingPlan& plan) {
  LOCKSTEP_RETURN_IF_ERROR(CheckShapesAreKnown(tensors));
  ReductionLayout layout;
  for (const TensorSpec& tensor : tensors) {
    layout.tensors_.push_back({tensor.dtype, *tensor.shape, 0, tensor.shares});
  }
  std::vector<int64_t> placed(tensors.size());
  size_t end = 0;
  bool is_after_pack = false;
  for (const ReductionVector& vector : plan.vectors()) {
    const size_t size = SizeOf(vector.dtype);
    // A tensor that one pack begins may end in the next one, right behind it.
    if (!vector.is_pack || !is_after_pack || end % size != 0) end = Aligned(end);
    is_after_pack = vector.is_pack;
    layout.vectors_.push_back({vector.dtype, Shape({vector.elements}), end});
    layout.segments_.push_back(vector.segments);
    for (const PackedSegment& segment : vector.segments) {
      LOCKSTEP_RETURN_IF_ERROR(CheckShares(tensors[segment.tensor], vector));
      Place& tensor = layout.tensors_[segment.tensor];
      const size_t begin = end - segment.first * size;
      if (segment.first == 0) tensor.offset = end;
      if (tensor.dtype != vector.dtype || segment.first != placed[segment.tensor] ||
          tensor.offset != begin) {
        return absl::InvalidArgumentError(absl::StrCat(
            "packing: tensor ", tensors[segment.tensor].name, ": expected ",
            Name(tensors[segment.tensor].dtype), " from element ", placed[segment.tensor],
            " on, got ", Name(vector.dtype), " from element ", segment.first, " on"));
      }
      placed[segment.tensor] += segment.count;
      end += segment.count * size;
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (placed[i] == tensors[i].shape->num_elements()) continue;
    return absl::InvalidArgumentError(absl::StrCat("packing: tensor ", tensors[i].name,
                                                   ": expected ", tensors[i].shape->num_elements(),
                                                   " elements, got ", placed[i]));
  }
  layout.num_bytes_ = Tensor::RoomFor(end);
  return layout;
}

std::vector<MutableTensorView> ReductionLayout::VectorOf(
    int v, absl::Span<std::byte* const> towers) const {
  std::vector<MutableTensorView> views;
  for (std::byte* const memory : towers) views.push_back(vector(v, memory));
  return views;
}

const TensorView& ReductionLayout::GradientOf(const PackedSegment& segment,
                                              const std::vector<TensorView>& gradients) const {
  LOCKSTEP_CHECK(gradients.size() == tensors_.size());
  const TensorView& gradient = gradients[segment.tensor];
  const Place& place = tensors_[segment.tensor];
  const int64_t elements = place.shape.num_elements() / std::max(1, place.shares);
  LOCKSTEP_CHECK(gradient.dtype == place.dtype && gradient.num_elements() == elements);
  return gradient;
}

void ReductionLayout::FindGradients(int v, absl::Span<const std::vector<TensorView>> gradients,
                                    std::vector<const void*>* found) const {
  found->clear();
  if (segments_[v].size() != 1) return;
  const PackedSegment& segment = segments_[v][0];
  if (tensors_[segment.tensor].shares > 1) return;
  const size_t first = segment.first * SizeOf(vectors_[v].dtype);
  for (const std::vector<TensorView>& tower : gradients) {
    found->push_back(static_cast<const std::byte*>(GradientOf(segment, tower).data) + first);
  }
}

void ReductionLayout::CopyGradients(int v, absl::Span<const std::vector<TensorView>> gradients,
                                    absl::Span<std::byte* const> towers, int first_rank) const {
  LOCKSTEP_CHECK(gradients.size() == towers.size());
  const size_t size = SizeOf(vectors_[v].dtype);
  for (size_t tower = 0; tower < towers.size(); ++tower) {
    for (const PackedSegment& segment : segments_[v]) {
      const TensorView& gradient = GradientOf(segment, gradients[tower]);
      const Place& place = tensors_[segment.tensor];
      const size_t first = segment.first * size;
      const bool is_share = place.shares > 0;
      const size_t bytes = is_share ? gradient.num_bytes() : segment.count * size;
      const size_t rank = is_share ? first_rank + tower : 0;
      const auto* const from = static_cast<const std::byte*>(gradient.data) + first;
      std::byte* const to = towers[tower] + place.offset + first + rank * bytes;
      if (from != to && bytes > 0) std::memcpy(to, from, bytes);
    }
  }
}

}  // namespace lockstep::worker
