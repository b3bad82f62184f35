// Exit codes by reason. Below 128: do not restart; from 128: a restart can help (TFJob, Slurm and
// systemd read it so). docs/operations.md has the table for users.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

enum class ExitCode : int {
  kDone = 0,
  kUsage = 64,         // bad flag or command
  kCorruptInput = 65,  // data set, model file or checkpoint with wrong bytes
  kInputNotFound = 66,
  kBug = 70,               // internal invariant broken
  kCannotCreate = 73,      // output cannot be created
  kIoError = 74,           // I/O error that persists
  kNotPermitted = 77,      // authentication or authorisation refused
  kBadConfiguration = 78,  // cluster or job wrong, or tasks that do not agree
  kDiverged = 79,          // a gradient is not finite, and the job refuses that
  kFenced = 80,            // a newer incarnation or term owns this role
  kInterrupted = 130,      // SIGINT
  kPeersLost = 138,        // peers or port not available in time
  kTerminated = 143,       // SIGTERM handled
  kDeviceFailed = 158,     // a GPU or its driver failed after the start
};

// From this code on a successor may succeed where the process did not; 128 + n says that signal n
// has killed it.
inline constexpr int kFirstRetryableCode = 128;

// The exit code for a fatal status. A code set with WithExitCode wins; otherwise the canonical code
// decides: INVALID_ARGUMENT, FAILED_PRECONDITION, ALREADY_EXISTS, OUT_OF_RANGE 78; NOT_FOUND 66;
// DATA_LOSS 65; ABORTED 80; UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED 138;
// PERMISSION_DENIED, UNAUTHENTICATED 77; CANCELLED 143; anything else 70.
ExitCode ExitCodeFor(const absl::Status& status);

// The same status with an exit code of its own. It survives copies, and calls
// through common/rpc/grpc_status.h.
absl::Status WithExitCode(absl::Status status, ExitCode code);

// INVALID_ARGUMENT with exit code 64: a mistake on the command line.
absl::Status UsageError(absl::string_view message);

// Prints "<program>: <message>" to stderr, unless the status is a success. Returns the exit code
// for main. A program calls it last.
int PrintFailure(absl::string_view program, const absl::Status& status);

}  // namespace lockstep
