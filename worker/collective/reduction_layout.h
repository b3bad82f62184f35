// ReductionLayout places the tensors and vectors of a reduction in the memory of one tower. A pack
// overlaps its tensors, so that packing copies nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "worker/collective/packing_plan.h"

namespace lockstep::worker {

// Immutable.
class ReductionLayout {
 public:
  // INVALID_ARGUMENT naming the tensor: its shape is unknown, or its elements are not in `plan`
  // once each and in their order. Also for a gathered one that is not in a vector of its own, or
  // whose elements do not divide into its shares.
  static absl::StatusOr<ReductionLayout> Create(absl::Span<const TensorSpec> tensors,
                                                const PackingPlan& plan);

  // Size of the memory of one tower: a multiple of Tensor::kAlignment.
  size_t num_bytes() const { return num_bytes_; }
  int num_tensors() const { return static_cast<int>(tensors_.size()); }
  int num_vectors() const { return static_cast<int>(vectors_.size()); }
  // Return views into the tower's memory at `memory`, which is aligned to Tensor::kAlignment.
  MutableTensorView tensor(int i, std::byte* memory) const { return At(tensors_[i], memory); }
  MutableTensorView vector(int v, std::byte* memory) const { return At(vectors_[v], memory); }

  // The views of vector `v` in the memory of each tower.
  std::vector<MutableTensorView> VectorOf(int v, absl::Span<std::byte* const> towers) const;
  // Finds the elements of vector `v` in gradients[tower][i]: sets one address per tower in `found`.
  // Empty: they are not contiguous (a pack, or several shares), or there are none. Number of towers
  // and tensors, dtypes and sizes agree (CHECK).
  void FindGradients(int v, absl::Span<const std::vector<TensorView>> gradients,
                     std::vector<const void*>* found) const;
  // Copies the elements of gradients[tower][i] that vector `v` has into the memory of the tower,
  // except those already there. Of a gathered tensor, gradients[tower][i] is the share of the
  // participant of rank `first_rank` + tower. Number of towers and tensors, dtypes and sizes agree
  // (CHECK).
  void CopyGradients(int v, absl::Span<const std::vector<TensorView>> gradients,
                     absl::Span<std::byte* const> towers, int first_rank) const;

 private:
  struct Place {
    DType dtype = DType::kFloat32;
    Shape shape;
    size_t offset = 0;
    int shares = 0;  // TensorSpec::shares
  };

  // Checks dtype and size as FindGradients does (CHECK).
  const TensorView& GradientOf(const PackedSegment& segment,
                               const std::vector<TensorView>& gradients) const;
  static MutableTensorView At(const Place& place, std::byte* memory) {
    return {place.dtype, place.shape, memory + place.offset};
  }

  std::vector<Place> tensors_;
  std::vector<Place> vectors_;
  std::vector<std::vector<PackedSegment>> segments_;  // of each vector
  size_t num_bytes_ = 0;
};

}  // namespace lockstep::worker
