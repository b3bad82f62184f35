#include "common/dataset/fit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {

absl::Status CheckExamplesFit(absl::string_view file, const Shape& examples, const Shape& input) {
  const bool channel_missing =
      input.rank() == examples.rank() + 1 && input.dim(examples.rank()) == 1 &&
      std::equal(examples.dims().begin(), examples.dims().end(), input.dims().begin());
  // A file has no dimension for the only time step of each sequence.
  const bool step_missing = examples.rank() == 1 && input.rank() == 2 && input.dim(0) == 1 &&
                            input.dim(1) == examples.dim(0);
  if (examples == input || channel_missing || step_missing) return absl::OkStatus();
  const std::string remedy =
      examples.rank() == 0
          ? "name the file of the examples: this one has a single number for each, as labels do"
          : absl::StrCat("write input_shape: [", absl::StrJoin(examples.dims(), ", "),
                         examples.rank() == 2 ? ", 1" : "",
                         "] in the model, or name files of its shape");
  return absl::InvalidArgumentError(absl::StrCat(file, ": examples have the shape ",
                                                 examples.ToString(), ", the model's input is ",
                                                 input.ToString(), ". Remedy: ", remedy, "."));
}

absl::Status CheckIndicesKept(const DataDef& data) {
  const bool offset = data.offset() != 0;
  if (!offset && (data.scale() == 0 || data.scale() == 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("data.", offset ? "offset" : "scale", ": expected ", offset ? "0" : "1",
                   ", for an embedding takes row indices from the examples as they are, got ",
                   offset ? data.offset() : data.scale(),
                   ". Remedy: leave it out, and bring the other columns near 0 in the file."));
}

}  // namespace lockstep
