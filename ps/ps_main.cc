// The parameter server daemon.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/available_memory.h"
#include "common/base/clock.h"
#include "common/base/cpus.h"
#include "common/base/exit_code.h"
#include "common/base/flag_value.h"
#include "common/base/running_clock.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/daemon/daemon.h"
#include "common/fs/path_roots.h"
#include "common/log/log.h"
#include "common/rpc/process.h"
#include "common/rpc/shutdown_signal.h"
#include "ps/copy/copy_host.h"
#include "ps/copy/copy_senders.h"
#include "ps/copy/hosted_shards.h"
#include "ps/copy/unsaved_watch.h"
#include "ps/service/chief_watchdog.h"
#include "ps/service/heap_trim_policy.h"
#include "ps/service/orphan_watch.h"
#include "ps/service/ps_server.h"
#include "ps/service/serial_thread.h"
#include "ps/shard/memory_claims.h"
#include "ps/shard/shard.h"

ABSL_FLAG(std::optional<int64_t>, task_index, std::nullopt,
          "which ps of the cluster spec this is, from 0");
ABSL_FLAG(double, orphan_timeout, 0,
          "seconds without a call of a chief after which the ps ends, unless it holds a model that "
          "could not be saved; 0: never");

ABSL_FLAG(uint32_t, copy_port, 0,
          "port where the ps keeps a copy of another one's shard, in a job with sync.ps_replicas; "
          "0: any that is free");

ABSL_FLAG(
    std::vector<std::string>, checkpoint_roots, {},
    "folders, with commas between: checkpoints are saved to and restored from folders in them "
    "alone; default: anywhere");

namespace lockstep::ps {
namespace {

constexpr char kUsage[] =
    "ps --cluster=FILE --task_index=N\n"
    "\n"
    "A Lockstep parameter server. It hosts a shard of the model's variables: the chief creates "
    "them,\n"
    "workers push gradients and pull values. When the job is done the process exits.\n";

// Replies on their way get this long when the process ends.
constexpr absl::Duration kGrace = absl::Milliseconds(500);
// A chief asks each ps of a pair four times a second, and acts after 0.3 s of refusals.
constexpr absl::Duration kTellChief = absl::Seconds(1);
// For replies, and for what the disk still does.
constexpr absl::Duration kShutdownTimeout = absl::Seconds(5);
// The chief tells all shards at the same time that the job is over.
constexpr absl::Duration kFinishPatience = absl::Seconds(1);
constexpr uint32_t kMaxPort = 65535;
constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr absl::Duration kPollAtEnd = absl::Milliseconds(20);

absl::Duration OrphanTimeout() {
  const double seconds = absl::GetFlag(FLAGS_orphan_timeout);
  return seconds > 0 ? absl::Seconds(seconds) : absl::InfiniteDuration();
}

// `reason`: why the chief gave the job up; empty where it did not.
void LogEnd(ExitCode code, const std::string& reason) {
  if (code == ExitCode::kDone) return log::Info("the job is done");
  if (reason.empty()) return log::Info("told to stop");
  log::Warning(absl::StrCat("the job was given up: ", reason));
}

// Returns when the chief has called, the process is told to stop, or patience is over.
absl::Status WaitForChief(const DaemonContext& daemon, const absl::Notification& called,
                          std::atomic<bool>* asked) {
  const Clock* clock = Clock::Real();
  ChiefWatchdog wait(absl::StrJoin(daemon.task.cluster.chiefs(), " or "), clock->Monotonic(),
                     daemon.start_timeout);
  while (!called.HasBeenNotified() &&
         !daemon.stop->notification()->WaitFor(absl::Milliseconds(200))) {
    const absl::Duration now = clock->Monotonic();
    if (asked->exchange(false)) wait.Asked(now);
    if (absl::Status status = wait.Check(now); !status.ok() && !called.HasBeenNotified())
      return status;
    if (const auto line = wait.Message(now)) {
      line->is_warning ? log::Warning(line->text) : log::Info(line->text);
    }
  }
  return absl::OkStatus();
}

// Returns when the process is told to stop, or its chief has gone for good. Has the heap trimmed
// meanwhile: in the background, after what was dropped has been freed there.
absl::Status WaitForEnd(OrphanWatch* orphan, const Clock& clock, const HostedShards& shards,
                        UnsavedWatch* unsaved, SerialThread* background,
                        const ShutdownSignal& stop) {
  bool has_warned = false;
  HeapTrimPolicy trim;
  bool must_trim = false;  // stays while too much waits in the background
  while (!stop.notification()->WaitFor(kPoll)) {
    must_trim = trim.IsDue(shards.Activity(), clock.Monotonic()) || must_trim;
    if (must_trim) must_trim = !background->TryDo(TrimHeap);
    const absl::Duration now = clock.Monotonic();
    if (!orphan->IsOrphan(now)) continue;
    const UnsavedWatch::Answer held = unsaved->Check(now);
    if (held == UnsavedWatch::Answer::kNothing) return orphan->Ended();
    if (held == UnsavedWatch::Answer::kReading || std::exchange(has_warned, true)) continue;
    log::Warning(
        absl::StrCat("no chief calls; this ps stays, because it holds a model that is in no "
                     "checkpoint that it can read. Remedy: "
                     "start the chief with --resume, which saves it; SIGTERM ends the ps"));
  }
  return absl::OkStatus();
}

// Serves on after a signal until the chief has said that the job is over, or there is nothing that
// it may still save.
void ServeChief(OrphanWatch* orphan, const Clock& clock, const std::atomic<bool>& is_over) {
  orphan->Signalled(clock.Monotonic());
  while (!is_over && orphan->MayBeSaved(clock.Monotonic())) absl::SleepFor(kPollAtEnd);
}

// Where shards have copies the chief lets the other ps of each go on. It could not tell from an
// address that ends with this process, which refuses no connection.
void TellChief(PsServer* server, CopyHost* copy) {
  if (!copy->is_open()) return;
  server->Leave();
  copy->Leave();
  absl::SleepFor(kTellChief);
}

absl::Status Run(const DaemonContext& daemon) {
  const TaskConfig& task = daemon.task;
  ShutdownSignal* const stop = daemon.stop;
  const RunningClock clock(Clock::Real());
  const uint32_t copy_port = absl::GetFlag(FLAGS_copy_port);
  if (copy_port > kMaxPort) {
    return UsageError(absl::StrCat("--copy_port: expected a port, 0 to ", kMaxPort, ", got ",
                                   copy_port,
                                   ". Remedy: leave it out for one that the system chooses"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckSeconds("--orphan_timeout", absl::GetFlag(FLAGS_orphan_timeout)));
  absl::Notification called;
  absl::once_flag first_call;
  OrphanWatch orphan(OrphanTimeout());
  std::string reason;  // set before `stop`
  std::atomic<bool> asked = false;
  std::atomic<bool> is_over = false;  // the chief has said so
  const Incarnation incarnation = NewIncarnation();
  LOCKSTEP_ASSIGN_OR_RETURN(PathRoots roots,
                            PathRoots::Create(absl::GetFlag(FLAGS_checkpoint_roots)));
  SharedMemoryRegistry memory;
  MemoryClaims claims([] {
    TrimHeap();  // the epoch before has freed memory
    return AvailableMemory();
  });
  CopySenders senders(static_cast<uint32_t>(task.index), daemon.serving.credentials, &clock);
  // Ends before the senders: the state of a shard goes in the background, and its target with it,
  // which tells them.
  SerialThread background;
  const ShardOptions shard_options{
      .threads = UsableCpus(),
      .make_value_memory = [&memory](uint64_t bytes) { return memory.MakeValues(bytes); },
      .memory = &claims,
      .run_in_background =
          [&background](const std::function<void()>& work) { return background.TryDo(work); },
      .make_copy_target = [&senders](const CopyTargetOptions& of) { return senders.Make(of); },
      .clock = &clock,
      .other_place = absl::StrCat("ps ", (task.index + 1) % task.cluster.ps.size())};
  Shard shard(shard_options);
  std::optional<CopyHost> copy;
  PsServerOptions serving = {
      .address = daemon.serving.address,
      .insecure = daemon.serving.insecure,
      .name_patience = daemon.serving.name_patience,
      .stop = daemon.serving.stop,
      .credentials = daemon.serving.credentials,
      .memory = &memory,
      .clock = &clock,
      .identity = {.task_index = static_cast<uint32_t>(task.index),
                   .clusters = daemon.cluster->known(),
                   .incarnation = incarnation,
                   .checkpoint_roots = std::move(roots)},
      .events = {.called_by_chief =
                     [&] {
                       orphan.Called(clock.Monotonic());
                       absl::call_once(first_call, [&called] { called.Notify(); });
                     },
                 .asked_by_chief = [&asked] { asked.store(true); },
                 .work_begins = [&] { orphan.BeginWork(clock.Monotonic()); },
                 .work_ends = [&] { orphan.EndWork(clock.Monotonic()); },
                 .created = [] { log::Info("variables created"); },
                 .open_copy_port = [&copy] { return copy->Open(); },
                 .finished =
                     [&, once = std::make_shared<absl::once_flag>()](const JobEnd& end) {
                       absl::call_once(*once, [&] {
                         reason = end.reason;
                         is_over = true;
                         stop->Stop(end.code);
                       });
                     }}};
  PsServerOptions serving_copy = serving;
  serving_copy.events.created = [] { log::Info("copy of the variables created"); };
  serving_copy.events.open_copy_port = nullptr;
  copy.emplace(shard_options, std::move(serving_copy), task.cluster.ps.size(), copy_port);
  const HostedShards shards(&shard, &*copy);
  UnsavedWatch unsaved(shards);
  const auto server = PsServer::Start(&shard, serving);
  // What waits for the copy of this shard holds it.
  const absl::Cleanup close = [&senders] { senders.Close(); };
  if (absl::IsCancelled(server.status())) return StoppedWith(stop->Wait());
  if (!server.ok()) return server.status();
  log::Info(absl::StrCat("lockstep ps ", kVersion, " listening on ", daemon.serving.address,
                         ", cluster spec from ", task.source));
  if (task.index == 0) LogCongestionControl();  // one line for the cluster
  // Which workers a job has is the chief's affair.
  stop->OnHangup([&daemon] { daemon.cluster->Reread(/*workers_may_change=*/true); });
  const absl::Cleanup end_reading = [stop] { stop->OnHangup(nullptr); };
  absl::Status end = WaitForChief(daemon, called, &asked);
  if (end.ok()) end = WaitForEnd(&orphan, clock, shards, &unsaved, &background, *stop);
  if (!end.ok()) {
    // A checkpoint folder that is being read may never answer.
    stop->Stop(ExitCodeFor(end));
    stop->EndWithin(kShutdownTimeout);
    return end;
  }
  const ExitCode code = stop->Wait();
  LogEnd(code, reason);
  if (!is_over) ServeChief(&orphan, clock, is_over);
  if (is_over) copy->AwaitFinish(kFinishPatience);
  stop->EndWithin(kShutdownTimeout);
  if (!is_over) TellChief(server->get(), &*copy);
  (*server)->TellStandbys();
  copy->TellStandbys();
  (*server)->Shutdown(kGrace);
  copy->Shutdown(kGrace);
  return StoppedWith(code);
}

}  // namespace
}  // namespace lockstep::ps

int main(int argc, char** argv) {
  using namespace lockstep;
  return RunDaemon({Role::kPs, ps::kUsage, &FLAGS_task_index}, argc, argv, ps::Run);
}
