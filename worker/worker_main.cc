// The worker: registers with the chief, computes gradients on its towers, exits when the job is
// over.
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/cpus.h"
#include "common/base/exit_code.h"
#include "common/base/flag_value.h"
#include "common/base/monotonic_wait.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/client/chief_client.h"
#include "common/config/cluster_proto.h"
#include "common/config/known_cluster_specs.h"
#include "common/config/output_flag.h"
#include "common/daemon/daemon.h"
#include "common/log/log.h"
#include "common/rpc/process.h"
#include "common/rpc/server.h"
#include "common/status/status_service.h"
#include "worker/backend/device_flag.h"
#include "worker/device/cpu/wait_policy.h"
#include "worker/peer/peer_service.h"
#include "worker/service/failover_chief_client.h"
#include "worker/service/registration.h"
#include "worker/service/worker_job.h"
#include "worker/step/example_log.h"
#include "worker/step/timeline.h"

ABSL_FLAG(std::optional<int64_t>, task_index, std::nullopt,
          "which worker of the spec this is; default: TF_CONFIG's task");
ABSL_FLAG(int, threads, 0, "threads that compute; 0: all CPUs that this process may use");
ABSL_FLAG(absl::Duration, sleep, absl::ZeroDuration(),
          "for trials of a slow worker: each of its steps takes this much longer, such as 50ms");
ABSL_FLAG(absl::Duration, stall, absl::ZeroDuration(),
          "for trials of a straggler: every fourth of its steps takes this much longer");
ABSL_FLAG(std::string, timeline, "",
          "write when each phase of each step was over to this file (CSV)");
ABSL_FLAG(std::string, example_log, "",
          "write which examples each tower took in each step to this file (CSV)");
namespace lockstep::worker {
namespace {

// Of the flags; null where they are not given.
struct StepFiles {
  Timeline* timeline = nullptr;
  ExampleLog* examples = nullptr;
};

// For the others' next step, and to tell the chief that it leaves: a worker ends within 5 seconds.
constexpr absl::Duration kShutdownTimeout = absl::Milliseconds(4500);
constexpr char kUsage[] =
    "worker --cluster=FILE --task_index=N\n"
    "\n"
    "A Lockstep worker. It takes the job, the model and its share of the data from the chief, "
    "computes gradients and\n"
    "pushes them to the parameter servers. The chief may be started before or after it.\n";

// What the status service shows: the run while there is one.
class Status {
 public:
  void SetRun(const WorkerJob* run) {
    absl::MutexLock lock(&mutex_);
    run_ = run;
  }
  void Fill(ProcessStatus* status) const {
    absl::MutexLock lock(&mutex_);
    if (run_ != nullptr) {
      run_->FillStatus(status);
    } else {
      status->set_state("starting");
      status->set_waiting_for("the chief");
    }
  }

 private:
  mutable absl::Mutex mutex_;
  const WorkerJob* run_ ABSL_GUARDED_BY(mutex_) = nullptr;  // outlives its time here
};

int Threads() {
  const int threads = absl::GetFlag(FLAGS_threads);
  return threads > 0 ? threads : UsableCpus();
}

// Whether a new incarnation may take the place of one that ended so: the chief or a ps has told it
// that it is no member of the job, or no longer.
bool JoinsAnew(const absl::Status& end) {
  return absl::IsAborted(end) ||
         (absl::IsFailedPrecondition(end) && ExitCodeFor(end) == ExitCode::kPeersLost);
}

std::unique_ptr<FailoverChiefClient> ConnectChiefs(const DaemonContext& daemon, Server* server) {
  return std::make_unique<FailoverChiefClient>(
      [queue = server->queue(),
       credentials = daemon.serving.credentials](const std::string& address) {
        return MakeChiefClient(
            {.address = address, .name = "chief", .queue = queue, .credentials = credentials});
      },
      daemon.cluster->spec().chiefs(),
      [](const std::string& address) {
        log::Info(absl::StrCat("the chief at ", address, " commands"));
      });
}

// A cluster spec that a chief has told.
void Adopt(const ClusterDef& told, RunningCluster* cluster, FailoverChiefClient* chiefs) {
  const auto changed = cluster->Adopt(FromProto(told));
  if (changed.has_value()) chiefs->SetAddresses(changed->chiefs());
}

// Registers as a new incarnation and takes part until the job ends.
absl::Status Join(const DaemonContext& daemon, const Backend& backend, Incarnation incarnation,
                  FailoverChiefClient* chief, Server* server, PeerService* peers, Status* status,
                  const StepFiles& files, const MonotonicNotification* stop) {
  const TaskConfig& task = daemon.task;
  RegisterTaskRequest request;
  request.set_worker(task.index);
  request.set_incarnation(incarnation.value());
  FillTexts(daemon.cluster->known()->texts(), &request);
  request.set_version(kVersion);
  request.set_host(HostName());
  request.set_pid(getpid());
  RegistrationOptions registration;
  registration.chief_name =
      absl::StrCat("chief (", absl::StrJoin(daemon.cluster->spec().chiefs(), " or "), ")");
  registration.start_timeout = daemon.start_timeout;
  LOCKSTEP_ASSIGN_OR_RETURN(RegisterTaskReply reply, Register(chief, request, registration, stop));
  if (reply.done()) {
    log::Info("the job was over before this worker came");
    return absl::OkStatus();
  }
  Adopt(reply.cluster(), daemon.cluster, chief);
  log::Info(absl::StrCat("joined job \"", reply.job().name(), "\" at step ", reply.start_step()));

  WorkerJobOptions options;
  options.registration = std::move(reply);
  options.worker = task.index;
  options.incarnation = incarnation.value();
  options.ps_addresses = daemon.cluster->spec().ps;
  options.home_of = [&daemon](size_t shard) { return daemon.cluster->spec().ps[shard]; };
  options.chief_name = [chief] { return chief->last_chief(); };
  options.on_cluster = [&daemon, chief](const ClusterDef& told) {
    Adopt(told, daemon.cluster, chief);
  };
  options.queue = server->queue();
  options.credentials = daemon.serving.credentials;
  options.peers = peers;
  options.patience = registration.start_timeout;
  options.threads = Threads();
  options.backend = backend;
  options.delay = {absl::GetFlag(FLAGS_sleep), absl::GetFlag(FLAGS_stall)};
  options.timeline = files.timeline;
  options.example_log = files.examples;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerJob> run,
                            WorkerJob::Create(std::move(options), chief));
  server->SetReady(true);
  status->SetRun(run.get());
  absl::Status end = run->Run(stop);
  status->SetRun(nullptr);
  server->SetReady(false);
  if (end.ok()) log::Info("the job is done");
  return end;
}

absl::Status Run(const DaemonContext& daemon, const Backend& backend, Status* status,
                 const StepFiles& files, const MonotonicNotification* stop) {
  const TaskConfig& task = daemon.task;
  Incarnation incarnation = NewIncarnation();
  const auto status_service =
      MakeStatusService({"worker", static_cast<uint32_t>(task.index), incarnation.value()},
                        [&](Callback<ProcessStatus> respond) {
                          ProcessStatus filled;
                          status->Fill(&filled);
                          respond(std::move(filled));
                        });
  ServerOptions serving = daemon.serving;
  serving.stop = stop;
  PeerService peers;
  serving.services = {status_service.get(), &peers};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(serving));
  const std::unique_ptr<FailoverChiefClient> chief = ConnectChiefs(daemon, server.get());
  // Which workers a job has is the chief's affair.
  daemon.stop->OnHangup([&daemon, &chief] {
    const auto changed = daemon.cluster->Reread(/*workers_may_change=*/true);
    if (changed.has_value()) chief->SetAddresses(changed->chiefs());
  });
  const absl::Cleanup end_reading = [&daemon] { daemon.stop->OnHangup(nullptr); };
  while (true) {
    absl::Status end =
        Join(daemon, backend, incarnation, chief.get(), server.get(), &peers, status, files, stop);
    if (!JoinsAnew(end)) return end;
    // Given up by the chief, after a pause too long or without a way to it, or the job goes back to
    // a checkpoint: whatever this incarnation still sent would be refused. If another worker has
    // the place by now, the chief says so.
    log::Warning(absl::StrCat(end.message(), "; joining anew"));
    incarnation = NewIncarnation();
  }
}

absl::Status RunWithFiles(const DaemonContext& daemon, const Backend& backend, Status* status,
                          const MonotonicNotification* stop) {
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<ExampleLog> examples;
  if (const std::string path = absl::GetFlag(FLAGS_timeline); !path.empty()) {
    auto made = Timeline::Create(path, Clock::Real());
    if (!made.ok()) return OutputFlagError("--timeline", made.status());
    timeline = *std::move(made);
  }
  if (const std::string path = absl::GetFlag(FLAGS_example_log); !path.empty()) {
    auto made = ExampleLog::Create(path);
    if (!made.ok()) return OutputFlagError("--example_log", made.status());
    examples = *std::move(made);
  }
  absl::Status end = Run(daemon, backend, status, {timeline.get(), examples.get()}, stop);
  const auto warn = [](absl::string_view flag, const absl::Status& written) {
    if (!written.ok()) log::Warning(absl::StrCat(flag, ": ", written.message()));
  };
  if (timeline != nullptr) warn("--timeline", timeline->Flush());
  if (examples != nullptr) warn("--example_log", examples->status());
  return end;
}

absl::Status RunWorker(const DaemonContext& daemon) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNotNegative("--threads", absl::GetFlag(FLAGS_threads), "CPUs"));
  LOCKSTEP_RETURN_IF_ERROR(CheckDuration("--sleep", absl::GetFlag(FLAGS_sleep)));
  LOCKSTEP_RETURN_IF_ERROR(CheckDuration("--stall", absl::GetFlag(FLAGS_stall)));
  LOCKSTEP_ASSIGN_OR_RETURN(const Backend backend, BackendOfFlag());
  log::Info(absl::StrCat("computes on ", backend.description(), ", with ",
                         CountText(static_cast<uint64_t>(Threads()), "thread")));
  if (!backend.problem().empty()) log::Info(absl::StrCat("GPU not used: ", backend.problem()));
  Status status;
  MonotonicNotification stop;
  std::thread work([&] {
    const absl::Status end = RunWithFiles(daemon, backend, &status, &stop);
    // Whoever asked for the end knows of it.
    if (!absl::IsCancelled(end)) PrintFailure(daemon.name, end);
    daemon.stop->Stop(ExitCodeFor(end));
  });
  const ExitCode code = daemon.stop->Wait();
  stop.Notify();
  daemon.stop->EndWithin(kShutdownTimeout);
  work.join();
  return StoppedWith(code);
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  using namespace lockstep;
  worker::UsePassiveWaiting(argv);
  return RunDaemon({Role::kWorker, worker::kUsage, &FLAGS_task_index}, argc, argv,
                   worker::RunWorker);
}
