#include "common/fs/absolute_path.h"

#include <filesystem>
#include <system_error>

namespace lockstep {

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return path;
  std::filesystem::path result = absolute.root_path();
  for (const std::filesystem::path& name : absolute.relative_path()) {
    if (name.empty() || name == ".") continue;
    const bool goes_up = name == "..";
    const bool goes_back =
        goes_up && result.filename() != ".." && !std::filesystem::is_symlink(result, error);
    if (goes_back) {
      result = result.parent_path();
    } else {
      result /= name;
    }
  }
  return result.string();
}

}  // namespace lockstep
