#include "common/checkpoint/latest.h"

#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/folder.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 4096;  // a name is far shorter
constexpr size_t kMostShown = 80;

}  // namespace

absl::StatusOr<int64_t> ReadLatest(const std::string& root) {
  const std::string path = JoinPath(root, kLatestFile);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  const absl::string_view name = absl::StripAsciiWhitespace(text);
  if (const std::optional<int64_t> step = ParseCheckpointName(name)) return *step;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": '", absl::CEscape(name.substr(0, kMostShown)),
                   "' is not the name of a checkpoint, such as ", CheckpointName(1500)));
}

}  // namespace lockstep
