// Files that hold a secret: read and written so that no other user of the host learns it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::security {

// The content. PERMISSION_DENIED (exit 77): other users may read or write the file. Errors of
// ReadFile, which show nothing of it.
absl::StatusOr<std::string> ReadSecret(const std::string& path, size_t max_bytes);

// Makes the file, which must not exist, with mode 0600. Errors as common/fs/fs_error.h says: what
// could not be written and synced is deleted.
absl::Status WriteSecret(const std::string& path, absl::string_view text);

}  // namespace lockstep::security
