// What `lockstep stop` says, from what the processes answer. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/job_control.pb.h"
#include "proto/status.pb.h"

namespace lockstep::deploy {

// INVALID_ARGUMENT with exit code 64, saying who listens at `address`, unless that is a chief. A
// chief that stands by ends no job: the error names the one that commands.
absl::Status CheckIsChief(const std::string& address, const ProcessStatus& status);

// How the job has ended, and the checkpoint there is of it. With a line's end.
std::string StopText(const StopReply& reply);
// What was to be saved and is not; empty: nothing.
std::string StopWarning(const StopReply& reply);

// Of a chief that answers nothing any more, because it ends: its own answer, or CANCELLED from its
// server. The job need not have ended: after SIGTERM the next chief goes on with it.
bool IsEnding(const absl::Status& status);
// What is said then. With a line's end.
std::string EndingText();
// Why the process did not tell who it is, with what the user can do.
absl::Status NoChiefError(const absl::Status& status);
// Why the chief did not end the job, with the same.
absl::Status StopError(const absl::Status& status);

}  // namespace lockstep::deploy
