// Texts of `lockstep stop`, made from the answers of the processes. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/job_control.pb.h"
#include "proto/status.pb.h"

namespace lockstep::deploy {

// INVALID_ARGUMENT with exit code 64 if the process at `address` is not a chief; the error names
// the process. A standby chief cannot end a job: the error names the chief that commands.
absl::Status CheckIsChief(const std::string& address, const ProcessStatus& status);

// Says how the job has ended, and names its checkpoint if there is one. Ends with a newline.
std::string StopText(const StopReply& reply);
// Warns that the last step is not saved; empty: it is saved.
std::string StopWarning(const StopReply& reply);

// True if `status` is from a chief that is exiting: its own answer, or CANCELLED from its server.
// The job need not have ended: after SIGTERM the next chief continues it.
bool IsEnding(const absl::Status& status);
// Returns the text for an exiting chief. Ends with a newline.
std::string EndingText();
// The error of a process that did not report its role, with a remedy.
absl::Status NoChiefError(const absl::Status& status);
// The error of a chief that did not end the job, with a remedy.
absl::Status StopError(const absl::Status& status);

}  // namespace lockstep::deploy
