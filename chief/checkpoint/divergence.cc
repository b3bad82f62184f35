#include "chief/checkpoint/divergence.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/fs/path.h"

namespace lockstep::chief {

std::string DescribeDivergence(const std::string& folder, const Manifest& manifest) {
  if (manifest.IsFinite()) return "";
  const std::string what = absl::StrCat(folder, " has values that are infinite or NaN; ");
  const std::string root = FolderOf(folder);
  const absl::StatusOr<std::optional<int64_t>> finite = FindFinite(root, manifest);
  if (!finite.ok()) {
    return absl::StrCat(what,
                        "the newest checkpoint without is not known: ", finite.status().message());
  }
  if (!finite->has_value()) {
    return absl::StrCat(what, "there is no earlier checkpoint without. Remedy: end the job, lower ",
                        "the learning rate or correct the data, then start it with --fresh");
  }
  const std::string newest = CheckpointFolder(root, **finite);
  return absl::StrCat(what, newest, " is kept as the newest checkpoint without. Remedy: end the ",
                      "job, lower the learning rate or correct the data, then start it with ",
                      "--restore=", newest);
}

}  // namespace lockstep::chief
