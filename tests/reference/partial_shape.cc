#include "tests/reference/partial_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::reference {

bool PartialShape::IsCompatibleWith(const Shape& shape) const {
  if (!dims_.has_value()) return true;
  if (static_cast<int>(dims_->size()) != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t declared = (*dims_)[axis];
    if (declared != kUnknown && declared != shape.dim(axis)) return false;
  }
  return true;
}

std::string PartialShape::ToString() const {
  if (!dims_.has_value()) return "<unknown>";
  const auto write = [](std::string* out, int64_t extent) {
    absl::StrAppend(out, extent == kUnknown ? "?" : absl::StrCat(extent));
  };
  return absl::StrCat("[", absl::StrJoin(*dims_, ",", write), "]");
}

}  // namespace lockstep::reference
