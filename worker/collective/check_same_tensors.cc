#include "worker/collective/check_same_tensors.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/printable.h"

namespace lockstep::worker {
namespace {

constexpr size_t kShownNames = 5;
constexpr size_t kMaxShownName = 200;  // bytes

// Another worker may call its tensors anything.
std::string ShownName(const TensorSpec& tensor) { return Printable(tensor.name, kMaxShownName); }

std::string DescribeTensor(const TensorSpec& tensor) {
  return absl::StrCat(ShownName(tensor), " ", Name(tensor.dtype), " ",
                      tensor.shape.has_value() ? tensor.shape->ToString() : "unknown");
}

// "; only HERE: a, b". Empty: `others` have all of them.
std::string OnlyIn(absl::Span<const TensorSpec> tensors, absl::Span<const TensorSpec> others,
                   const std::string& where) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : others) names.push_back(tensor.name);
  std::ranges::sort(names);
  std::vector<std::string> only;
  for (const TensorSpec& tensor : tensors) {
    if (!std::ranges::binary_search(names, tensor.name)) only.push_back(ShownName(tensor));
  }
  if (only.empty()) return "";
  const size_t shown = std::min(only.size(), kShownNames);
  const std::string more =
      shown == only.size() ? "" : absl::StrCat(" and ", only.size() - shown, " more");
  only.resize(shown);
  return absl::StrCat("; only in ", where, ": ", absl::StrJoin(only, ", "), more);
}

}  // namespace

absl::Status CheckSameTensors(absl::Span<const TensorSpec> own, absl::Span<const TensorSpec> theirs,
                              const std::string& who) {
  constexpr char kRemedy[] = ". Remedy: give every tower of every worker the same model";
  if (own.size() != theirs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradients: expected ", own.size(), ", got ", theirs.size(), " from ", who,
                     OnlyIn(own, theirs, "this worker"), OnlyIn(theirs, own, who), kRemedy));
  }
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] == theirs[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient ", i, ": expected ", DescribeTensor(own[i]), ", got ", DescribeTensor(theirs[i]),
        " from ", who, OnlyIn(own, theirs, "this worker"), OnlyIn(theirs, own, who), kRemedy));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
