// Errors for failed system calls on files. The message is one line with the path, the action and
// the system's words.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// "<path>: cannot <action>: <text of error_number>". NOT_FOUND for a missing file,
// PERMISSION_DENIED for a forbidden action, RESOURCE_EXHAUSTED for a full disk or quota, otherwise
// the code of absl::ErrnoToStatus. INTERNAL replaces the codes that mean something else in a call
// between processes: ABORTED, ALREADY_EXISTS, CANCELLED, DEADLINE_EXCEEDED and UNAVAILABLE.
// The exit code is that of an input that cannot be read (66), or 74 for a failing device.
absl::Status ReadError(const std::string& path, absl::string_view action, int error_number);

// True if `status` is a ReadError that may pass although nobody changes the file: its storage has
// failed, for example with EIO or ESTALE, or this process was short of descriptors or memory. Also
// true for one that came back from a call.
bool IsStorageFailure(const absl::Status& status);

// The same as ReadError for an output: exit code 73, or 74 for a failing device, or 138 for a full
// disk, where trying again later can help.
absl::Status WriteError(const std::string& path, absl::string_view action, int error_number);

}  // namespace lockstep
