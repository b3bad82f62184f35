// Files that hold the token of a job, or a credential that was made from it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/caller.h"
#include "common/security/job_token.h"

namespace lockstep::security {

// The job's token for a process that serves. PERMISSION_DENIED (exit 77): other users may read or
// write the file. INVALID_ARGUMENT: it holds no token of a job. Errors name the file, and show
// nothing of it.
absl::StatusOr<JobToken> ReadJobToken(const std::string& path);

// What `caller` sends. The file may hold the job's token, or the credential of a reader or an
// operator alone (`lockstep token --of`), which is sent whoever `caller` is. Errors as above.
absl::StatusOr<std::string> ReadCredential(const std::string& path, const Caller& caller);

}  // namespace lockstep::security
