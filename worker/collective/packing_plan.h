// PackingPlan maps the elements of tensors to vectors, so that small or many tensors are reduced as
// few large vectors. A plan is made once from dtypes and shapes. Pack and Unpack are one pass over
// the caller's memory and allocate nothing.
//
// Use: plan once; each step, Pack every pack of each tower, reduce vectors 0, 1, ... in order, and
// Unpack. A vector that is not a pack is one whole tensor, reduced in place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {

// The description of a tensor from which a plan is made.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::optional<Shape> shape;  // nullopt: not known
  // 0: the tensor is reduced. Otherwise it is gathered from this number of participants. Each has
  // an equal share of the elements; the shares lie in the order of the ranks.
  int shares = 0;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// Elements [first, first + count) of a tensor.
struct PackedSegment {
  int tensor = 0;
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const PackedSegment&, const PackedSegment&) = default;
};

// A vector that one reduction handles as a whole.
struct ReductionVector {
  bool is_pack = false;  // otherwise one whole tensor
  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  std::vector<PackedSegment> segments;  // in their order, without gaps
};

// A value. Every element of every tensor is in exactly one vector. In the plan of a packer, packs
// come first, then the other tensors in their order.
class PackingPlan {
 public:
  explicit PackingPlan(std::vector<ReductionVector> vectors) : vectors_(std::move(vectors)) {}
  // Makes a plan without packs. The shapes are known (CHECK).
  static PackingPlan Unpacked(absl::Span<const TensorSpec> tensors);

  absl::Span<const ReductionVector> vectors() const { return vectors_; }
  int num_packs() const;

 private:
  std::vector<ReductionVector> vectors_;
};

// Copies the elements of a pack from `tensors`, which are those of the plan, to `pack`, which has
// the vector's dtype and number of elements (CHECK).
void Pack(const ReductionVector& vector, absl::Span<const TensorView> tensors,
          const MutableTensorView& pack);
// The inverse. Shapes and positions are those of `tensors`.
void Unpack(const ReductionVector& vector, const TensorView& pack,
            absl::Span<const MutableTensorView> tensors);

// INVALID_ARGUMENT naming the tensor: "Shape is unknown for node ...".
absl::Status CheckShapesAreKnown(absl::Span<const TensorSpec> tensors);

}  // namespace lockstep::worker
