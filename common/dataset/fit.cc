#include "common/dataset/fit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep {

absl::Status CheckExamplesFit(absl::string_view file, const Shape& examples, const Shape& input) {
  const bool channel_missing =
      input.rank() == examples.rank() + 1 && input.dim(examples.rank()) == 1 &&
      std::equal(examples.dims().begin(), examples.dims().end(), input.dims().begin());
  if (examples == input || channel_missing) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": examples have the shape ", examples.ToString(), ", the model's input is ",
      input.ToString(), ". Remedy: give the model's input the shape of the examples."));
}

}  // namespace lockstep
