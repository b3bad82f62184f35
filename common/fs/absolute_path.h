// Where a path leads, from any working directory.
#pragma once

#include <string>

namespace lockstep {

// `path` from the root, without "." and without what ".." takes back. A ".." behind a symbolic link
// stays, since it means the folder above the link's target: that may be another one on each host.
// Looks at the disk for links alone. `path` as it is when the working directory is gone.
std::string AbsolutePath(const std::string& path);

}  // namespace lockstep
