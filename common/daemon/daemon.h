// RunDaemon does the common work of ps, worker and chief, from the first line of main to the exit
// code: flags, signals, log, the task of the cluster spec, and the address to serve on.
//
// Defines the flags --cluster, --listen, --insecure, --start_timeout and --log_level, and those of
// daemon_credentials.h.
#pragma once

#include <string>

#include "absl/flags/flag.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/config/task.h"
#include "common/daemon/running_cluster.h"
#include "common/rpc/server.h"
#include "common/rpc/shutdown_signal.h"

namespace lockstep {

struct DaemonOptions {
  Role role = Role::kWorker;
  absl::string_view usage;  // the answer to --help, before the flags
  const absl::Flag<std::optional<int64_t>>* task_index = nullptr;  // --task_index
};

struct DaemonContext {
  std::string name;                   // "ps 1", of the only chief "chief": in messages
  TaskConfig task;                    // as it was at the start
  RunningCluster* cluster = nullptr;  // of the task, as it changes while the process runs
  absl::Duration start_timeout;       // for processes that are away
  ServerOptions serving;              // without services
  ShutdownSignal* stop = nullptr;
};

// Sets the process up, calls `run` once on this thread, and prints the error that it returns.
// CANCELLED is not printed: the caller that asked for the end knows of it. Returns the exit code
// for main. Call it first in main.
int RunDaemon(const DaemonOptions& options, int argc, const char* const* argv,
              absl::FunctionRef<absl::Status(const DaemonContext&)> run);

// The result of `run` after ShutdownSignal::Wait: OK for kDone, else CANCELLED with this exit code.
absl::Status StoppedWith(ExitCode code);

}  // namespace lockstep
