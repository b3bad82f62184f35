// Flags that name a file to write.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The error of making that file, with the flag and a remedy.
absl::Status OutputFlagError(absl::string_view flag, const absl::Status& status);

// Finds before the work that its result could not be written: it would cost the work, or the exit
// code of a job that is done. Empty: no file is wanted. Otherwise makes a file beside it for a
// moment. Errors as AtomicFile::Create.
absl::Status CheckOutputFlag(absl::string_view flag, const std::string& path);

}  // namespace lockstep
