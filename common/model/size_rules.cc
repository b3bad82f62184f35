#include "common/model/size_rules.h"

#include <limits>

#include "absl/strings/str_join.h"

namespace lockstep {
namespace {

// Of elements in one tensor. Libraries for CPUs and GPUs index with 32 bits here and there.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

}  // namespace

absl::StatusOr<Shape> SizedShape(absl::string_view what, absl::Span<const int64_t> dims) {
  absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok() || shape->num_elements() > kMaxElements) {
    return Invalid(what, " of shape [", absl::StrJoin(dims, ","), "] has more than ", kMaxElements,
                   " elements. Remedy: make the layer or its input smaller");
  }
  return shape;
}

absl::Status RequireInputs(absl::Span<const Shape> inputs, size_t fewest, bool more) {
  if (inputs.size() == fewest || (more && inputs.size() > fewest)) return absl::OkStatus();
  return Invalid("inputs: expected ", fewest, more ? " or more" : "", ", got ", inputs.size(),
                 ". Remedy: ",
                 more ? "name the layers that it joins, inputs: [\"a\", \"b\"]"
                      : "name one layer, or join several with add or concatenate first");
}

absl::StatusOr<int64_t> Positive(absl::string_view field, int64_t value) {
  if (value >= 1 && value <= kMaxElements) return value;
  return Invalid(field, ": expected 1 to ", kMaxElements, ", got ", value, ". Remedy: ",
                 value == 0 ? absl::StrCat("give it, such as ", field, ": 3")
                            : absl::StrCat("correct ", field));
}

absl::Status RequireVector(const Shape& input) {
  if (input.rank() == 1) return absl::OkStatus();
  return Invalid("expected an input of rank 1, got ", input.ToString(),
                 ". Remedy: flatten first (put a flatten layer before it)");
}

}  // namespace lockstep
