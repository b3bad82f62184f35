// Paths as text; nothing here looks at the disk.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// `path` as seen from `folder`: an absolute path stays as it is, an empty folder adds nothing.
std::string JoinPath(absl::string_view folder, absl::string_view path);

// The folder that holds `path`: "." for a bare name, "/" for an entry of the root. A slash at the
// end does not count.
std::string FolderOf(absl::string_view path);

// The last component of `path`, without a slash at the end; empty for "/" and "".
std::string NameOf(absl::string_view path);

// Whether `name` names an entry of a folder and nothing else: not empty, not "." or "..", no slash,
// no NUL, at most 255 bytes. Names from files must pass before they are joined to a path.
bool IsEntryName(absl::string_view name);

}  // namespace lockstep
