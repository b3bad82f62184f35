#include "deploy/cli/local_run.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/annotate.h"
#include "common/base/cpus.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/fs/absolute_path.h"
#include "common/fs/atomic_file.h"
#include "common/fs/folder.h"
#include "common/fs/path.h"
#include "common/rpc/tls_credentials.h"
#include "common/security/job_token.h"
#include "common/security/secret_file.h"
#include "deploy/cli/job_certificates.h"
#include "deploy/cli/job_progress.h"
#include "deploy/cli/local_cluster.h"
#include "deploy/cli/next_command.h"
#include "deploy/cli/ports.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/status_poller.h"
#include "deploy/cli/supervisor.h"

namespace lockstep::deploy {
namespace {

constexpr char kReader[] = "reader";  // whose certificates `lockstep certificates` makes
constexpr char kOperator[] = "operator";
constexpr char kJobName[] = "lockstep";  // in certificates
constexpr absl::Duration kValidity = absl::Hours(24 * 365);

// This program is <bin_dir>/deploy/cli/up.
std::string BuiltIn() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path().parent_path().string();
}

ClusterSpec ClusterAt(const std::vector<std::string>& addresses, const LocalCluster& local,
                      int standbys) {
  const auto first_ps = addresses.begin() + 1 + standbys;
  return {.ps = {first_ps, first_ps + local.ps()},
          .workers = {first_ps + local.ps(), addresses.end()},
          .chief = addresses[0],
          .other_chiefs = {addresses.begin() + 1, first_ps}};
}

void ShowPlan(const ClusterSpec& cluster, const std::vector<Task>& tasks, const LocalPlan& plan,
              const SyncDef& sync, Console* console) {
  const std::string mode = sync.has_asynchronous()
                               ? "asynchronous"
                               : absl::StrCat(sync.replicas_to_aggregate(), " aggregated per step");
  const auto workers = static_cast<uint64_t>(cluster.Count(Role::kWorker));
  console->Line(absl::StrCat("starting ", cluster.Count(Role::kPs), " ps, ",
                             CountText(workers, "worker"), " (", mode, ") and a chief",
                             cluster.other_chiefs.empty() ? "" : ", which has a standby"));
  for (const Task& task : tasks) {
    console->Line(absl::StrFormat("  %-9s %s", task.command.name, task.command.ToShell()));
  }
  console->Line("logs: " + JoinPath(plan.run_dir, "logs"));
  const auto show = [&](absl::string_view what, std::string command, const char* role) {
    std::vector<std::string> words = {ScriptBeside(plan.bin_dir), std::move(command),
                                      cluster.chief};
    for (std::string& flag : ShownBy(role, plan)) words.push_back(std::move(flag));
    console->Line(absl::StrCat(what, ": ", ShellLine(std::move(words))));
  };
  show("state", "status", kReader);
  show("end", "stop", kOperator);
}

// In the folder of the run, for every task: a token or certificates, not those of an earlier run.
absl::Status MakeSecrets(const ClusterSpec& cluster, const LocalPlan& plan) {
  if (!plan.tls_folder.empty()) {
    return MakeCertificates(plan.tls_folder, cluster, kJobName, kValidity).status();
  }
  std::error_code ignored;
  std::filesystem::remove(plan.token_path, ignored);
  return security::WriteSecret(plan.token_path, security::JobToken::NewText());
}

absl::StatusOr<std::shared_ptr<const rpc::Credentials>> LoadOwn(const LocalPlan& plan) {
  if (plan.tls_folder.empty()) return rpc::MakeToolCredentials(plan.token_path);
  return rpc::MakeTlsToolCredentials(
      {.files = {.certificate = CertificatePath(plan.tls_folder, kReader),
                 .authorities = AuthorityPath(plan.tls_folder)}});
}

// What is new in `source`, a status or a summary.
template <typename Source>
void ShowNews(const Source& source, JobProgress* progress, Console* console) {
  for (const std::string& line : progress->NewWarnings(source)) console->Error(line);
  for (const std::string& line : progress->NewEvaluations(source)) console->Line(line);
}

// Whether starting again may help, with what was saved.
bool CanGoOn(int exit_code) { return exit_code >= kFirstRetryableCode; }

// Of `lockstep up`: what protects the run, and the devices that it runs on. Files that the next run
// would overwrite, and trials of slow workers, are left out.
std::vector<std::string> FlagsToRepeat(const LocalRunOptions& options) {
  std::vector<std::string> flags;
  if (options.tls) flags.emplace_back("--tls");
  if (options.standby) flags.emplace_back("--standby");
  if (!options.worker_devices.empty()) {
    flags.push_back("--worker_devices=" + absl::StrJoin(options.worker_devices, ","));
  }
  if (!options.gpu_memory_limit.empty()) {
    flags.push_back("--gpu_memory_limit=" + options.gpu_memory_limit);
  }
  if (options.autotune) flags.emplace_back("--autotune");
  return flags;
}

int WorkersNeeded(const SyncDef& sync) {
  // Under FIFO one worker may give a step all its gradients.
  const bool one_will_do =
      sync.has_asynchronous() || sync.token_policy() == FIFO || sync.quorum_policy() == SHRINK;
  return one_will_do ? 1 : static_cast<int>(sync.replicas_to_aggregate());
}

}  // namespace

std::string ProgramFolder(const LocalRunOptions& options) {
  return AbsolutePath(options.bin_dir.empty() ? BuiltIn() : options.bin_dir);
}

void ShowResult(const LocalRunOptions& options, const Summary& summary, Console* console) {
  console->Line(absl::StrCat(SummaryText(summary), "job            ", options.job_path,
                             "\nlogs           ", JoinPath(options.run_dir, "logs")));
  if (const std::string warning = DivergenceWarning(summary); !warning.empty()) {
    return console->Error(warning);
  }
  // A model of several losses predicts what one of them reads, which is rarely what it is for.
  if (summary.checkpoint.empty() || !options.job.job.losses().empty()) return;
  const std::string predict =
      PredictCommand(ScriptBeside(ProgramFolder(options)), summary.checkpoint, options.job);
  if (!predict.empty()) console->Line("To use the model:\n  " + predict);
}

absl::StatusOr<LocalRunResult> RunLocally(const LocalRunOptions& options, Console* console) {
  const Supervisor::SignalBlock block;
  JobDef job = options.job.job;
  LOCKSTEP_RETURN_IF_ERROR(Annotate(ValidateJob(&job, job.local().workers()), options.job_path));
  const int standbys = options.standby ? 1 : 0;
  // Held to the end of the run.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const PortReservation ports,
      PortReservation::Take(1 + standbys + job.local().ps() + job.local().workers()));
  const ClusterSpec cluster = ClusterAt(ports.addresses(), job.local(), standbys);
  const LocalPlan plan = {
      .bin_dir = ProgramFolder(options),
      .run_dir = options.run_dir,
      .cluster_path = JoinPath(options.run_dir, "cluster.json"),
      .job_path = AbsolutePath(options.job_path),
      .token_path = options.tls ? "" : JoinPath(options.run_dir, "job.token"),
      .tls_folder = options.tls ? JoinPath(options.run_dir, "tls") : "",
      .summary_path = JoinPath(options.run_dir, "summary.json"),
      .start_flag = options.start_flag,
      .log_level = options.log_level,
      .cores = UsableCpus(),
      .worker_sleeps = options.worker_sleeps,
      .worker_stalls = options.worker_stalls,
      .worker_devices = options.worker_devices,
      .gpu_memory_limit = options.gpu_memory_limit,
      .autotune = options.autotune,
      .timeline_dir = options.timeline_dir.empty() ? "" : AbsolutePath(options.timeline_dir),
  };
  if (!plan.timeline_dir.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(AddRemedy(Annotate(MakeFolders(plan.timeline_dir), "--timeline_dir"),
                                       "name a folder in which this user may write"));
  }
  LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(plan.cluster_path, ClusterJsonText(cluster)));
  std::error_code ignored;
  // Those of an earlier run.
  std::filesystem::remove(plan.summary_path, ignored);
  LOCKSTEP_RETURN_IF_ERROR(MakeSecrets(cluster, plan));
  LOCKSTEP_RETURN_IF_ERROR(RemoveOldLogs(options.run_dir));

  const std::vector<Task> tasks = PlanTasks(cluster, plan);
  ShowPlan(cluster, tasks, plan, job.sync(), console);
  Supervisor supervisor(
      tasks,
      {.workers_needed = WorkersNeeded(job.sync()),
       .keeps_state = !job.checkpoint().folder().empty() || job.sync().ps_replicas() > 0,
       .has_standby = options.standby},
      console);
  LOCKSTEP_RETURN_IF_ERROR(supervisor.StartAll());

  LocalRunResult result;
  LOCKSTEP_ASSIGN_OR_RETURN(auto credentials, LoadOwn(plan));
  StatusPoller poller(cluster.chiefs(), std::move(credentials));
  JobProgress progress;
  const auto show_status = [&] {
    const auto status = poller.Latest();
    if (!status) return;
    ShowNews(*status, &progress, console);
    console->Progress(JobProgress::Line(*status));
  };
  // A chief that dies before the next poll sees it train is started by its first command once more.
  // With --fresh it goes on from the ps all the same; with --restore it is refused (78).
  result.exit_code = supervisor.Run(show_status, [&] { return poller.HasBegun(); });
  if (result.exit_code == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(result.summary, ReadSummary(plan.summary_path));
    ShowNews(*result.summary, &progress, console);
    return result;
  }
  if (const auto status = poller.Latest()) ShowNews(*status, &progress, console);
  const std::string resume =
      ResumeText(ScriptBeside(plan.bin_dir), options.job_path, job, FlagsToRepeat(options));
  if (CanGoOn(result.exit_code) && !resume.empty()) console->Line(resume);
  return result;
}

}  // namespace lockstep::deploy
