// Folders below which all paths of a peer must lie.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// Immutable; thread-safe.
class PathRoots {
 public:
  PathRoots() = default;  // allows every path

  // INVALID_ARGUMENT: one of the folders is no absolute path. They need not exist yet.
  static absl::StatusOr<PathRoots> Create(const std::vector<std::string>& folders);

  // OK for a path that is one of the folders or lies in one, after ".." and existing symbolic links
  // in it are resolved. Otherwise PERMISSION_DENIED naming the path; `remedy` says how to allow it.
  absl::Status Check(const std::string& path, const std::string& remedy) const;

 private:
  std::vector<std::string> folders_;  // as given
};

}  // namespace lockstep
