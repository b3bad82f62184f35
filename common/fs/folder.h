// Folders: make, list, remove.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/fs/atomic_file.h"

namespace lockstep {

// Makes `path` and the folders above it that are missing, durably. OK if it is there already.
// Errors as WriteError says; FAILED_PRECONDITION where a component is a file.
absl::Status MakeFolders(const std::string& path);

// Whether `path` is a folder (through symbolic links). False where the disk does not say.
bool IsFolder(const std::string& path);
// The same; errors as ReadError says where the disk does not say.
absl::StatusOr<bool> FindFolder(const std::string& path);

// Makes what was created, renamed or removed in the folder durable. Errors as WriteError says.
absl::Status SyncFolder(const std::string& path);

// Names of the entries, sorted by bytes, without "." and "..". Errors as ReadError says.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

// Removes the entry `name` of the folder `root`, with all that is below it when it is a folder. A
// symbolic link is removed, never followed, so nothing outside `root` is touched. OK if it is not
// there. INVALID_ARGUMENT when `name` is not the name of one entry (see IsEntryName). `check` is
// asked before each file or folder that goes; its error ends the removal.
absl::Status RemoveTree(const std::string& root, absl::string_view name,
                        const PublishCheck& check = nullptr);

}  // namespace lockstep
