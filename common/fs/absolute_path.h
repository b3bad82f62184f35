// Makes a path absolute: it means the same file from any working directory.
#pragma once

#include <string>

namespace lockstep {

// Returns `path` from the root, with "." and ".." resolved. A ".." behind a symbolic link stays,
// since it means the folder above the link's target: that may be another one on each host. Looks at
// the disk for links alone. Returns `path` as it is when the working directory is gone.
std::string AbsolutePath(const std::string& path);

}  // namespace lockstep
