// lockstep up: runs a job on a cluster of processes on this machine.
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/plan/start_choice.h"
#include "common/base/exit_code.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/config/job.h"
#include "common/config/start_flags.h"
#include "common/fs/absolute_path.h"
#include "deploy/cli/check_run.h"
#include "deploy/cli/console.h"
#include "deploy/cli/finish_command.h"
#include "deploy/cli/json_output.h"
#include "deploy/cli/local_run.h"
#include "deploy/cli/run_folder.h"

ABSL_FLAG(std::string, job, "",
          "job file (text proto); its local { ps: .. workers: .. } is started");
ABSL_FLAG(std::string, run_dir, "",
          "folder for logs and cluster.json; default: a new one in runs/");
ABSL_FLAG(std::string, json, "", "write the summary to this file");
ABSL_FLAG(std::string, log_level, "", "of the processes: info, warning or error");
ABSL_FLAG(std::vector<std::string>, worker_sleeps, {},
          "for trials of stragglers: --sleep of worker 0, 1, ..., such as 0,0,50ms");
ABSL_FLAG(std::vector<std::string>, worker_stalls, {},
          "for trials of stragglers: --stall of worker 0, 1, ..., such as 0,0,50ms");
ABSL_FLAG(std::vector<std::string>, worker_devices, {},
          "--device of the workers, in turn, one GPU each, such as cuda:0,cuda:1 (docs/gpu.md)");
ABSL_FLAG(std::string, gpu_memory_limit, "",
          "of each worker: GiB of each GPU that it may take, for several workers on one GPU; "
          "default: all that the GPU has");
ABSL_FLAG(bool, autotune, false,
          "of each worker: time cuDNN's engines and take the fastest (docs/gpu.md)");
ABSL_FLAG(bool, standby, false,
          "start a second chief, which takes the place of the first one when that dies");
ABSL_FLAG(std::string, timeline_dir, "",
          "folder for worker-0.csv, ...: when each phase of each step was over");
ABSL_FLAG(
    bool, tls, false,
    "encrypt all connections, with certificates that are made for the run; try a cluster's TLS "
    "so");
ABSL_FLAG(std::string, bin_dir, "", "where ps/ps, worker/worker and chief/chief are");

namespace lockstep::deploy {
namespace {

constexpr char kUsage[] =
    "lockstep up FILE [flags]\n"
    "lockstep up --job=FILE [flags]\n"
    "\n"
    "Starts the cluster that the job asks for on free loopback ports, shows its progress and ends\n"
    "with it. Prints the command of each process, to be copied onto real hosts (docs/deploy.md).\n"
    "The exit code is that of the process that failed for good first; 130 after Ctrl-C, 143 after\n"
    "SIGTERM or SIGHUP.\n";

// The chief's. It runs in the same folder, but its command line is printed to be copied.
std::string ChiefStartFlag() {
  if (absl::GetFlag(FLAGS_resume)) return "--resume";
  if (absl::GetFlag(FLAGS_fresh)) return "--fresh";
  const std::string folder = absl::GetFlag(FLAGS_restore);
  if (folder.empty()) return "";
  if (folder == kNewestCheckpoint) return "--restore";
  return "--restore=" + AbsolutePath(folder);
}

absl::StatusOr<int> Up(Console* console) {
  LOCKSTEP_RETURN_IF_ERROR(CheckStartFlags());
  LocalRunOptions options;
  options.job_path = absl::GetFlag(FLAGS_job);
  if (options.job_path.empty()) {
    return UsageError("--job: not set. Remedy: --job=FILE names what to train");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(options.job, LoadJob(options.job_path));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string warning, CheckRun(options.job_path, options.job.job,
                                                                chief::StartChoiceOfFlags()));
  if (!warning.empty()) console->Error(warning);
  LOCKSTEP_ASSIGN_OR_RETURN(JsonOutput json, JsonOutput::Create(absl::GetFlag(FLAGS_json)));
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const RunFolder run_folder,
      run_dir.empty() ? RunFolder::ClaimNew(options.job.job.name()) : RunFolder::Claim(run_dir));
  options.run_dir = run_folder.path();
  options.bin_dir = absl::GetFlag(FLAGS_bin_dir);
  options.start_flag = ChiefStartFlag();
  options.standby = absl::GetFlag(FLAGS_standby);
  options.log_level = absl::GetFlag(FLAGS_log_level);
  options.worker_sleeps = absl::GetFlag(FLAGS_worker_sleeps);
  options.worker_stalls = absl::GetFlag(FLAGS_worker_stalls);
  options.worker_devices = absl::GetFlag(FLAGS_worker_devices);
  options.gpu_memory_limit = absl::GetFlag(FLAGS_gpu_memory_limit);
  options.autotune = absl::GetFlag(FLAGS_autotune);
  options.timeline_dir = absl::GetFlag(FLAGS_timeline_dir);
  options.tls = absl::GetFlag(FLAGS_tls);
  LOCKSTEP_ASSIGN_OR_RETURN(const LocalRunResult result, RunLocally(options, console));
  if (!result.summary) return result.exit_code;
  ShowResult(options, *result.summary, console);
  LOCKSTEP_RETURN_IF_ERROR(json.Write(result.summary->json));
  return result.exit_code;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  lockstep::OpenStandardStreams();
  // The run goes on when the reader of its output has gone.
  lockstep::IgnoreBrokenPipes();
  std::vector<const char*> arguments = lockstep::WithNewestCheckpoint(argc, argv);
  std::string job;  // of `lockstep up FILE`
  if (argc > 1 && !absl::StartsWith(argv[1], "-")) {
    job = absl::StrCat("--job=", argv[1]);
    arguments[1] = job.c_str();
  }
  if (const auto flags =
          lockstep::HandleFlags("lockstep up", lockstep::deploy::kUsage, argc, arguments.data());
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  lockstep::deploy::Console console;
  return lockstep::deploy::FinishCommand("lockstep up", lockstep::deploy::Up(&console));
}
