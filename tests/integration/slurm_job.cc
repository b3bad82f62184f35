#include "tests/integration/slurm_job.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/client/status_client.h"
#include "common/config/cluster_reader.h"
#include "common/rpc/tls_credentials.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kJobPatience = absl::Minutes(1);
constexpr absl::Duration kNextStatus = absl::Milliseconds(20);

// Processes of the job run without leak detection. A node has PIDs of its own and the /proc of the
// host, where LeakSanitizer looks for /proc/PID/task, finds none, and ends a process that ends
// well. Programs without AddressSanitizer do not read the variable.
std::string WithoutLeakDetection() {
  const char* const options = std::getenv("ASAN_OPTIONS");
  return absl::StrCat("ASAN_OPTIONS=", options == nullptr ? "" : options, ":detect_leaks=0");
}

}  // namespace

SlurmJob::SlurmJob(SlurmCluster* slurm, JobText job)
    : slurm_(*slurm), files_(2, 2), job_path_([&] {
        job.checkpoint = "folder: 'checkpoints'";
        return files_.WriteJob(job);
      }()) {}

void SlurmJob::Submit(const std::vector<std::string>& chief_flags) {
  std::vector<std::string> command = {"/usr/bin/sbatch",
                                      "--parsable",
                                      "--nodes=2",
                                      "--chdir=" + folder(),
                                      Binary("deploy/slurm/lockstep.sbatch"),
                                      job_path_};
  command.insert(command.end(), chief_flags.begin(), chief_flags.end());
  // What srun finds after `sbatch --export=NONE`, or with a list of variables: the tasks of the job
  // need those of the script all the same. The job must outlast what a test does to it.
  id_ = slurm_.Run(std::move(command),
                   {"SLURM_EXPORT_ENV=NONE", "LOCKSTEP_BIN=" + Binary("."), WithoutLeakDetection(),
                    "LOCKSTEP_WORKER_FLAGS=--threads=1 --device=cpu --sleep=10ms"});
}

void SlurmJob::AwaitState(const std::string& state) {
  slurm_.AwaitJobField(id_, "JobState", state, kJobPatience);
}

void SlurmJob::StartAgain() {
  AwaitState("PENDING");
  slurm_.Run({"/usr/bin/scontrol", "update", "jobid=" + id_, "StartTime=now"});
}

std::string SlurmJob::Log(const std::string& task) const {
  return files_.folder().Read(absl::StrCat("slurm-", id_, "/logs/", task, ".log"));
}

int SlurmJob::Count(const std::string& task, const std::string& text) const {
  const std::vector<std::string> parts = absl::StrSplit(Log(task), text);
  return static_cast<int>(parts.size()) - 1;
}

int SlurmJob::CountRestored(int64_t step) const {
  return Count("chief", absl::StrCat("restored from ", Checkpoint(step), "\n"));
}

void SlurmJob::AwaitLog(const std::string& task, const std::string& text, int count) {
  const absl::Time deadline = absl::Now() + kJobPatience;
  FolderWatch watch(run_folder() + "/logs");
  while (Count(task, text) < count) {
    if (absl::Now() > deadline) Fail(absl::StrCat("expected ", count, " times: ", text));
    watch.Wait({}, deadline);
  }
}

int64_t SlurmJob::SavedStep() const {
  const std::vector<std::string> parts =
      absl::StrSplit(Log("chief"), absl::StrCat(" checkpoint ", folder(), "/checkpoints/ckpt-"));
  const std::vector<std::string> last = absl::StrSplit(parts.back(), '\n');
  int64_t step = -1;
  if (parts.size() < 2 || !absl::SimpleAtoi(last.front(), &step)) Fail("no checkpoint");
  return step;
}

std::string SlurmJob::Checkpoint(int64_t step) const {
  return absl::StrCat(folder(), "/checkpoints/ckpt-", step);
}

std::string SlurmJob::run_folder() const { return absl::StrCat(folder(), "/slurm-", id_); }

std::optional<int64_t> SlurmJob::Step() const {
  const auto spec = ReadClusterFile(spec_path());
  if (!spec.ok()) return std::nullopt;
  const std::string tls = run_folder() + "/tls";
  const auto credentials = rpc::MakeTlsToolCredentials(
      {.files = {.certificate = tls + "/reader.pem", .authorities = tls + "/ca.pem"}});
  if (!credentials.ok()) return std::nullopt;
  const auto status = FetchStatus(spec->chief, absl::Seconds(1), credentials->get());
  if (!status.ok()) return std::nullopt;
  return status->global_step();
}

int64_t SlurmJob::AwaitStepBeyond(int64_t step) {
  const absl::Time deadline = absl::Now() + kJobPatience;
  FolderWatch watch(folder());
  while (true) {
    const std::optional<int64_t> now = Step();
    if (now && *now > step) return *now;
    if (absl::Now() > deadline) Fail(absl::StrCat("expected a step beyond ", step));
    watch.Wait({}, absl::Now() + kNextStatus);
  }
}

void SlurmJob::KillWorker(int index) {
  const std::vector<std::string> arguments = {"worker/worker", "--cluster=" + spec_path(),
                                              absl::StrCat("--task_index=", index), ""};
  const std::vector<pid_t> found = ProcessesWith(absl::StrJoin(arguments, std::string(1, '\0')));
  if (found.size() != 1) Fail(absl::StrCat("expected one worker ", index, ", got ", found.size()));
  ::kill(found.front(), SIGKILL);
}

bool SlurmJob::HasProcesses() const { return !ProcessesWith("--cluster=" + spec_path()).empty(); }

std::string SlurmJob::Logs() const {
  std::string logs = files_.folder().Read(absl::StrCat("slurm-", id_, ".out"));
  for (const char* const task : {"chief", "ps-0", "ps-1", "worker-0", "worker-1"}) {
    absl::StrAppend(&logs, task, ":\n", Log(task));
  }
  return logs;
}

void SlurmJob::Fail(const std::string& why) const {
  FAIL(why << "\n" << Logs() << slurm_.Logs());
  std::abort();  // not reached
}

}  // namespace lockstep::test
