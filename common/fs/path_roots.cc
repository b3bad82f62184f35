#include "common/fs/path_roots.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/printable.h"

namespace lockstep {
namespace {

constexpr size_t kShownPath = 300;

bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [of_folder, of_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return of_folder == folder.end();
}

// Without a slash at its end, which would count as an empty name. nullopt: the disk does not say.
std::optional<std::filesystem::path> Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  if (error || resolved.empty()) return std::nullopt;
  return resolved.has_filename() ? resolved : resolved.parent_path();
}

}  // namespace

absl::StatusOr<PathRoots> PathRoots::Create(const std::vector<std::string>& folders) {
  PathRoots roots;
  for (const std::string& folder : folders) {
    if (!absl::StartsWith(folder, "/")) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", folder, "\" is no absolute path. Remedy: /path/to/folder"));
    }
    roots.folders_.push_back(folder);
  }
  return roots;
}

absl::Status PathRoots::Check(const std::string& path, const std::string& remedy) const {
  if (folders_.empty()) return absl::OkStatus();
  // A relative path depends on where this process was started; a NUL would end it for the kernel.
  const bool is_plain = absl::StartsWith(path, "/") && !absl::StrContains(path, '\0');
  const auto resolved = is_plain ? Resolved(path) : std::nullopt;
  const auto holds_it = [&](const std::string& folder) {
    const auto root = Resolved(folder);
    return root.has_value() && IsBelow(*resolved, *root);
  };
  if (resolved.has_value() && std::ranges::any_of(folders_, holds_it)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(Printable(path, kShownPath), " is not below ",
                                                  absl::StrJoin(folders_, " or "),
                                                  ". Remedy: ", remedy));
}

}  // namespace lockstep
