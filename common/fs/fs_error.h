// What a failed system call on a file means to a caller: one line with the path, what was tried and
// the system's words.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// "<path>: cannot <action>: <text of error_number>". NOT_FOUND for what is missing,
// PERMISSION_DENIED for what is not allowed, RESOURCE_EXHAUSTED for a full disk or quota, otherwise
// what absl::ErrnoToStatus says, with INTERNAL in place of the codes that mean something else in a
// call between processes: ABORTED, ALREADY_EXISTS, CANCELLED, DEADLINE_EXCEEDED and UNAVAILABLE.
// The exit code is that of an input that cannot be read (66), or 74 for a failing device.
absl::Status ReadError(const std::string& path, absl::string_view action, int error_number);

// Whether `status` is a ReadError that may pass although nobody changes the file: its storage has
// failed, with EIO or ESTALE, say, or this process was short of descriptors or memory. Also of one
// that came back from a call.
bool IsStorageFailure(const absl::Status& status);

// The same as ReadError for an output: exit code 73, or 74 for a failing device, or 138 for a full
// disk, where trying again later can help.
absl::Status WriteError(const std::string& path, absl::string_view action, int error_number);

}  // namespace lockstep
