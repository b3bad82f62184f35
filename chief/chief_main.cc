// The chief: reads the job, creates the variables at the parameter servers, lets the workers in,
// drives the steps, evaluates and saves, and ends everything.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "chief/cluster/job_ps.h"
#include "chief/copies/job_pairs.h"
#include "chief/job/job_series.h"
#include "chief/job/summary.h"
#include "chief/loop/event_loop.h"
#include "chief/plan/plan.h"
#include "chief/plan/start_choice.h"
#include "chief/service/answer.h"
#include "chief/service/chief_service.h"
#include "chief/service/job_control_service.h"
#include "common/base/exit_code.h"
#include "common/base/flag_value.h"
#include "common/base/running_clock.h"
#include "common/base/status_macros.h"
#include "common/client/ps_control.h"
#include "common/config/output_flag.h"
#include "common/config/start_flags.h"
#include "common/contact/ps_contacts.h"
#include "common/contact/ps_ping.h"
#include "common/daemon/daemon.h"
#include "common/fs/atomic_file.h"
#include "common/log/log.h"
#include "common/rpc/alarm_timer.h"
#include "common/rpc/process.h"
#include "common/rpc/server.h"
#include "common/status/status_service.h"

ABSL_FLAG(std::optional<int64_t>, task_index, std::nullopt,
          "which chief of the cluster spec this is, from 0; needed where there are several");
ABSL_FLAG(std::string, job, "", "job file (text proto)");
ABSL_FLAG(
    bool, standby, false,
    "wait until no chief commands, then go on as with --resume; chief 0 begins where none has "
    "commanded yet");
ABSL_FLAG(std::string, summary, "", "file for the run's summary (JSON)");
ABSL_FLAG(bool, record_losses, false,
          "write the loss of every step into the summary of a long job");
ABSL_FLAG(double, drain, 20,
          "seconds to save the last committed step when SIGTERM, SIGINT or a lack of workers ends "
          "this chief; 0: save nothing");
ABSL_FLAG(
    double, quorum_deadline, 0,
    "seconds without enough workers after which the job is saved and ends with 138; 0: never");
ABSL_FLAG(double, lease, 5,
          "seconds of silence after which a worker is lost, and after which a standby takes this "
          "chief's place; 2 to 86400");
namespace lockstep::chief {
namespace {

constexpr char kUsage[] =
    "chief --cluster=FILE --job=FILE\n"
    "\n"
    "The Lockstep chief. It reads the job and its model, creates the variables at the parameter "
    "servers, lets the\n"
    "workers in and drives the job to its end: training, evaluation, checkpoints.\n";

constexpr absl::Duration kTick = absl::Milliseconds(100);
// A heartbeat may be parked for a second.
constexpr double kShortestLease = 2;
// A day: processes tell it each other in milliseconds, in 32 bits.
constexpr double kLongestLease = 86400;
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);
// Of a job that has failed or is left: for what the disk still does. One that is done is waited
// for: its summary is wanted.
constexpr absl::Duration kShutdownTimeout = absl::Seconds(4);

absl::Status StopReason(ExitCode code) {
  return WithExitCode(
      absl::CancelledError(code == ExitCode::kInterrupted ? "the chief was interrupted"
                                                          : "the chief was told to end"),
      code);
}

std::unique_ptr<PsContacts> MakePsContacts(const DaemonContext& daemon, rpc::EventQueue* queue,
                                           Timer* timer) {
  const absl::Duration lease = absl::Seconds(absl::GetFlag(FLAGS_lease));
  ServerPingRequest request;
  request.set_chief(static_cast<uint32_t>(daemon.task.index));
  request.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(lease)));
  return std::make_unique<PsContacts>(
      PeerContactOptions{.lease = lease, .timer = timer, .waits_for_first = true},
      PsPings({.queue = queue, .credentials = daemon.serving.credentials}, request));
}

void SetPlaces(const std::vector<std::string>& ps_addresses, PsContacts* contacts) {
  for (size_t i = 0; i < ps_addresses.size(); ++i) {
    contacts->SetPlace(i, absl::StrCat("ps ", i), ps_addresses[i]);
  }
}

absl::Status Run(const DaemonContext& daemon, JobPlan plan) {
  const TaskConfig& task = daemon.task;
  ShutdownSignal* const notice = daemon.stop;
  EventLoop loop;
  const RunningClock clock(Clock::Real());
  std::optional<JobSeries> jobs;
  absl::Status outcome;
  const auto chief_service =
      MakeChiefService([&](WorkerIndex worker,
                           Incarnation incarnation) { return jobs->CallsFor(worker, incarnation); },
                       &loop);
  const auto job_control = MakeJobControlService(
      [&](Answer<StopReply> answer) { jobs->StopForOperator(std::move(answer)); }, &loop);
  const Incarnation incarnation = NewIncarnation();
  const auto status_service = MakeStatusService(
      {"chief", static_cast<uint32_t>(task.index), incarnation.value()},
      [&](Callback<ProcessStatus> respond) {
        loop.Post([&jobs, answer = Answer<ProcessStatus>(std::move(respond))]() mutable {
          jobs->GetStatus(std::move(answer));
        });
      });
  ServerOptions serving = daemon.serving;
  serving.services = {chief_service.get(), job_control.get(), status_service.get()};
  absl::StatusOr<std::unique_ptr<Server>> started = Server::Start(serving);
  if (absl::IsCancelled(started.status())) return StopReason(notice->Wait());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, std::move(started));

  std::optional<JobPs> ps;
  ps.emplace(
      [&](const std::string& name, const std::string& address) {
        return MakePsControl({.address = address,
                              .name = name,
                              .queue = server->queue(),
                              .credentials = daemon.serving.credentials});
      },
      task.cluster.ps, daemon.cluster->known());
  std::vector<PsControl*> shards = ps->all();
  std::optional<rpc::AlarmTimer> timer(server->queue());
  std::unique_ptr<PsContacts> contacts = MakePsContacts(daemon, server->queue(), &*timer);
  SetPlaces(task.cluster.ps, contacts.get());
  // Where each shard has a copy at the next ps, the two are one shard to the job.
  std::unique_ptr<JobPairs> pairs;
  JobOptions options;
  if (plan.job.sync().ps_replicas() > 0) {
    pairs = std::make_unique<JobPairs>(
        JobPairsOptions{.ps_addresses = task.cluster.ps,
                        .patience = absl::Seconds(absl::GetFlag(FLAGS_lease)),
                        .connect = std::bind_front(&JobPs::ConnectCopy, &*ps)},
        shards, &loop, &clock);
    shards = pairs->shards();
    options.shard_places = [&pairs] { return pairs->places(); };
    options.unfinished_places = [&pairs] { return pairs->DescribeUnfinished(); };
  }
  options.clusters = daemon.cluster->known();
  options.job_id = RandomId();
  options.incarnation = incarnation;
  options.chief_index = static_cast<uint32_t>(task.index);
  options.host = HostName();
  options.patience = daemon.start_timeout;
  options.lease = absl::Seconds(absl::GetFlag(FLAGS_lease));
  options.drain = absl::Seconds(absl::GetFlag(FLAGS_drain));
  if (absl::GetFlag(FLAGS_quorum_deadline) > 0) {
    options.quorum_deadline = absl::Seconds(absl::GetFlag(FLAGS_quorum_deadline));
  }
  options.real_clock = Clock::Real();
  options.record_losses = absl::GetFlag(FLAGS_record_losses);
  const bool workers_may_change = plan.is_elastic();
  jobs.emplace(
      std::move(plan), options, shards, &loop, &clock,
      [&] {
        server->SetReady(true);
        // The first ping of a ps that started later has failed, and the next one may meet a cut.
        contacts->CountSilence();
      },
      [&](absl::Status status) {
        outcome = std::move(status);
        loop.Quit();
      });

  std::thread signals([&] {
    notice->notification()->WaitForNotification();
    const ExitCode code = notice->Wait();
    loop.Post([&jobs, code] {
      code == ExitCode::kInterrupted ? jobs->Stop(StopReason(code)) : jobs->Leave(StopReason(code));
    });
  });
  notice->OnHangup([&, workers_may_change] {
    auto changed = daemon.cluster->Reread(workers_may_change);
    if (!changed.has_value()) return;
    loop.Post([&, cluster = *std::move(changed)] {
      ps->SetAddresses(cluster.ps);
      SetPlaces(cluster.ps, contacts.get());
      if (pairs != nullptr) pairs->SetAddresses(cluster.ps);
      jobs->SetCluster(cluster);
    });
  });
  loop.Post([&] { jobs->Start(); });
  loop.Run(kTick, [&] {
    clock.Monotonic();  // at each tick, so that it sees a standstill
    if (pairs != nullptr) pairs->Tick();
    jobs->Tick();
  });
  notice->Stop(ExitCodeFor(outcome));
  if (!outcome.ok()) notice->EndWithin(kShutdownTimeout);
  signals.join();
  notice->OnHangup(nullptr);
  contacts.reset();
  timer.reset();
  server->Shutdown(kShutdownGrace);
  // The calls in flight end here, before what they come back to.
  ps.reset();
  pairs.reset();

  const std::string summary = absl::GetFlag(FLAGS_summary);
  // One that has stood by to the end has nothing to sum up.
  if (JobController* const job = jobs->job(); outcome.ok() && !summary.empty() && job != nullptr) {
    outcome = WriteFileAtomically(summary, MakeSummary(job->plan(), job->record()));
  }
  return outcome;
}

absl::StatusOr<JobPlan> ReadJob(const TaskConfig& task) {
  if (absl::GetFlag(FLAGS_job).empty()) {
    return UsageError("--job: no job is given. Remedy: --job=FILE");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckStartFlags());
  const double lease = absl::GetFlag(FLAGS_lease);
  if (!(lease >= kShortestLease && lease <= kLongestLease)) {
    return UsageError(absl::StrCat("--lease: expected ", kShortestLease, " to ", kLongestLease,
                                   " seconds, got ", lease, ". Remedy: 5, the default"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckSeconds("--drain", absl::GetFlag(FLAGS_drain)));
  LOCKSTEP_RETURN_IF_ERROR(CheckSeconds("--quorum_deadline", absl::GetFlag(FLAGS_quorum_deadline)));
  StartChoice start = StartChoiceOfFlags();
  if (absl::GetFlag(FLAGS_standby)) {
    if (start.mode != StartMode::kBegin && start.mode != StartMode::kResume) {
      return UsageError(
          "--standby: it goes on where the job is, and --restore or --fresh is given, too. Remedy: "
          "give those to the chief that begins");
    }
    start = {.mode = StartMode::kSucceed};
  }
  return MakePlan(absl::GetFlag(FLAGS_job), task.cluster, start);
}

absl::Status RunChief(const DaemonContext& daemon) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOutputFlag("--summary", absl::GetFlag(FLAGS_summary)));
  LOCKSTEP_ASSIGN_OR_RETURN(JobPlan plan, ReadJob(daemon.task));
  return Run(daemon, std::move(plan));
}

}  // namespace
}  // namespace lockstep::chief

int main(int argc, char** argv) {
  using namespace lockstep;
  const std::vector<const char*> arguments = WithNewestCheckpoint(argc, argv);
  return RunDaemon({Role::kChief, chief::kUsage, &FLAGS_task_index}, argc, arguments.data(),
                   chief::RunChief);
}
