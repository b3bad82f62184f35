#include "common/fs/path.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

absl::string_view WithoutSlashesAtEnd(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace

std::string JoinPath(absl::string_view folder, absl::string_view path) {
  if (folder.empty() || absl::StartsWith(path, "/")) return std::string(path);
  if (path.empty()) return std::string(folder);
  return absl::StrCat(folder, folder.back() == '/' ? "" : "/", path);
}

std::string FolderOf(absl::string_view path) {
  path = WithoutSlashesAtEnd(path);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(WithoutSlashesAtEnd(path.substr(0, slash + 1)));
}

std::string NameOf(absl::string_view path) {
  path = WithoutSlashesAtEnd(path);
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path : path.substr(slash + 1));
}

bool IsEntryName(absl::string_view name) {
  constexpr size_t kLongestName = 255;
  return !name.empty() && name != "." && name != ".." && name.size() <= kLongestName &&
         name.find('/') == absl::string_view::npos && name.find('\0') == absl::string_view::npos;
}

}  // namespace lockstep
