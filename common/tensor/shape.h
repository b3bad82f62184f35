// The extent of a tensor in each dimension, row-major. Rank 0 is a scalar (one element).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep {

// A value; every extent is >= 0 and the number of elements fits in int64 (checked by Create).
class Shape {
 public:
  // In the .cc: seen inline, GCC 12 takes the unused inline storage for a bug of the caller's.
  Shape();
  // For shapes known to be sound; breaks a CHECK otherwise.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);

  // For shapes from files and peers. INVALID_ARGUMENT for a negative extent, a rank over kMaxRank,
  // or more elements than an int64 counts.
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const { return dims_[axis]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }

  // "[3,2]"; "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }

  static constexpr int kMaxRank = 8;

 private:
  absl::InlinedVector<int64_t, 4> dims_;
  int64_t num_elements_ = 1;
};

}  // namespace lockstep
