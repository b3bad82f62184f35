// One job from start to end on this machine, for `lockstep up` and `lockstep demo`.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/job.h"
#include "deploy/cli/console.h"
#include "deploy/cli/summary.h"

namespace lockstep::deploy {

struct LocalRunOptions {
  std::string job_path;                     // given to the chief
  LoadedJob job;                            // what it holds
  std::string run_dir;                      // claimed (run_folder.h)
  std::string bin_dir;                      // empty: where this program was built
  std::string start_flag;                   // of the chief, such as "--resume"; empty: none
  bool standby = false;                     // a second chief stands by
  std::string log_level;                    // of the tasks; empty: theirs
  std::vector<std::string> worker_sleeps;   // --sleep of worker 0, 1, ...
  std::vector<std::string> worker_stalls;   // --stall of them
  std::vector<std::string> worker_devices;  // --device of them, in turn; empty: theirs
  std::string gpu_memory_limit;             // of each worker; empty: theirs
  bool autotune = false;                    // of each worker
  std::string timeline_dir;                 // made if need be; empty: none
  bool tls = false;                         // certificates in place of a token
};

struct LocalRunResult {
  int exit_code = 0;
  std::optional<Summary> summary;  // of a job that is done
};

// Says on `console` what is started and how it goes; returns when no process is left. An error: it
// could not be started, and nothing runs. From the main thread, before others are started.
absl::StatusOr<LocalRunResult> RunLocally(const LocalRunOptions& options, Console* console);

// Where the programs are: absolute.
std::string ProgramFolder(const LocalRunOptions& options);

// The end of a run whose job is done: its figures, where everything is, how to use the model.
void ShowResult(const LocalRunOptions& options, const Summary& summary, Console* console);

}  // namespace lockstep::deploy
