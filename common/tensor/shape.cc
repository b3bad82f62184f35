#include "common/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/checked.h"

namespace lockstep {

Shape::Shape() = default;

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(absl::Span<const int64_t> dims) {
  absl::StatusOr<Shape> shape = Create(dims);
  LOCKSTEP_CHECK(shape.ok());
  *this = *std::move(shape);
}

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  // A peer may send any number of extents: the text names as many as a shape may have.
  const auto text = [&] {
    return absl::StrCat("shape [", absl::StrJoin(dims.subspan(0, kMaxRank), ","),
                        dims.size() > kMaxRank ? ",...]" : "]");
  };
  if (dims.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat(text(), ": rank ", dims.size(), " is over the limit of ", kMaxRank));
  }
  Shape shape;
  shape.dims_.assign(dims.begin(), dims.end());
  // The product of the non-zero extents is bounded too, so that strides never overflow.
  int64_t product = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return absl::InvalidArgumentError(absl::StrCat(text(), ": extent ", dim, " is negative"));
    if (dim == 0) {
      empty = true;
      continue;
    }
    const auto next = CheckedMultiply(product, dim);
    // Eight bytes is the widest element: the byte count must fit as well.
    if (!next.has_value() || !CheckedMultiply(*next, 8).has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(text(), ": more elements than can be counted"));
    }
    product = *next;
  }
  shape.num_elements_ = empty ? 0 : product;
  return shape;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ","), "]"); }

}  // namespace lockstep
