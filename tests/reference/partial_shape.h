// A shape of which the rank or some extents are not known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/tensor/shape.h"

namespace lockstep::reference {

class PartialShape {
 public:
  static constexpr int64_t kUnknown = -1;

  // Unknown rank: every shape is compatible.
  PartialShape() = default;
  // Extents, kUnknown where one is not known.
  explicit PartialShape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  explicit PartialShape(const Shape& shape)
      : dims_(std::vector<int64_t>(shape.dims().begin(), shape.dims().end())) {}

  // -1 where it is not known.
  int rank() const { return dims_.has_value() ? static_cast<int>(dims_->size()) : -1; }
  // Of a known rank; kUnknown where the extent is not.
  int64_t dim(int axis) const { return (*dims_)[axis]; }

  bool IsCompatibleWith(const Shape& shape) const;
  // "[3,?]"; "<unknown>" where even the rank is.
  std::string ToString() const;

 private:
  std::optional<std::vector<int64_t>> dims_;
};

}  // namespace lockstep::reference
