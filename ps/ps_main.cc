// The parameter server daemon.
#include <functional>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/available_memory.h"
#include "common/base/clock.h"
#include "common/base/cpus.h"
#include "common/base/exit_code.h"
#include "common/base/standard_streams.h"
#include "common/base/version.h"
#include "common/config/flags.h"
#include "common/config/listen.h"
#include "common/config/task.h"
#include "common/log/log.h"
#include "common/rpc/process.h"
#include "common/rpc/stop_notice.h"
#include "ps/service/chief_wait.h"
#include "ps/service/ps_server.h"
#include "ps/service/serial_thread.h"
#include "ps/shard/shard.h"

ABSL_FLAG(std::string, cluster, "",
          "cluster spec file: JSON or text proto. Default: the environment variable TF_CONFIG");
ABSL_FLAG(std::optional<int64_t>, task_index, std::nullopt,
          "which ps of the cluster spec this is, from 0");
ABSL_FLAG(
    std::string, listen, "",
    "host:port to listen on; default: the address in the cluster spec, which the others dial");
ABSL_FLAG(bool, insecure, false, "listen on an address that other machines can reach, unencrypted");
ABSL_FLAG(int64_t, start_timeout, 120, "seconds to wait for the chief's first call");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning or error");

namespace lockstep::ps {
namespace {

constexpr char kUsage[] =
    "ps --cluster=FILE --task_index=N [flags]\n"
    "Hosts a shard of the model's variables. The chief creates them, workers push gradients and "
    "pull values; when the job is done the process exits.";

// Replies on their way get this long when the process ends.
constexpr absl::Duration kGrace = absl::Milliseconds(500);

// Returns when the chief has called, the process is told to stop, or patience is over.
absl::Status WaitForChief(const std::string& chief, const absl::Notification& called,
                          const StopNotice& stop) {
  const Clock* clock = Clock::Real();
  ChiefWait wait(chief, clock->Monotonic(), absl::Seconds(absl::GetFlag(FLAGS_start_timeout)));
  while (!called.HasBeenNotified() && !stop.notification()->WaitFor(absl::Milliseconds(200))) {
    const absl::Duration now = clock->Monotonic();
    if (absl::Status status = wait.Check(now); !status.ok() && !called.HasBeenNotified())
      return status;
    if (const auto message = wait.Message(now)) log::Warning(*message);
  }
  return absl::OkStatus();
}

int Run(const std::string& who, const TaskConfig& task, StopNotice* stop) {
  absl::Notification called;
  absl::once_flag first_call;
  const Incarnation incarnation = NewIncarnation();
  MemoryDesk memory;
  SerialThread background;
  Shard shard{ShardOptions{
      .threads = UsableCpus(),
      .make_value_memory = [&memory](uint64_t bytes) { return memory.MakeValues(bytes); },
      .available_memory = [] { return AvailableMemory(); },
      .run_in_background =
          [&background](const std::function<void()>& work) { return background.TryDo(work); }}};
  const auto address = ListenAddress(absl::GetFlag(FLAGS_listen), task.address());
  if (!address.ok()) return PrintFailure(who, address.status());
  const auto server = PsServer::Start(
      &shard, {.address = *address,
               .insecure = absl::GetFlag(FLAGS_insecure),
               .name_patience = absl::Seconds(absl::GetFlag(FLAGS_start_timeout)),
               .stop = stop->notification(),
               .memory = &memory,
               .identity = {.task_index = static_cast<uint32_t>(task.index),
                            .cluster = task.cluster.Canonical(),
                            .incarnation = incarnation},
               .events = {.called_by_chief =
                              [&] { absl::call_once(first_call, [&called] { called.Notify(); }); },
                          .created = [] { log::Info("variables created"); },
                          .finished = [stop] { stop->Stop(ExitCode::kDone); }}});
  if (absl::IsCancelled(server.status())) return static_cast<int>(stop->Wait());
  if (!server.ok()) return PrintFailure(who, server.status());
  log::Info(absl::StrCat("lockstep ps ", kVersion, " listening on ", *address,
                         ", cluster spec from ", task.source));
  LogCongestionControl();
  if (absl::Status status = WaitForChief(task.cluster.chief, called, *stop); !status.ok())
    return PrintFailure(who, status);
  const ExitCode code = stop->Wait();
  log::Info(code == ExitCode::kDone ? "the job is done" : "told to stop");
  (*server)->Shutdown(kGrace);
  return static_cast<int>(code);
}

}  // namespace
}  // namespace lockstep::ps

int main(int argc, char** argv) {
  using namespace lockstep;
  OpenStandardStreams();
  const FlagsResult flags = HandleFlags("ps", ps::kUsage, argc, argv);
  if (flags.exit) return static_cast<int>(flags.code);
  TuneLocks();
  TuneHeap();
  StopNotice stop;
  const std::string level = absl::GetFlag(FLAGS_log_level);
  if (absl::Status status = log::Init("ps", level); !status.ok()) {
    return PrintFailure("ps", status);
  }
  const absl::StatusOr<TaskConfig> task =
      LoadTask(Role::kPs, absl::GetFlag(FLAGS_cluster), absl::GetFlag(FLAGS_task_index));
  if (!task.ok()) return PrintFailure("ps", task.status());
  const std::string who = absl::StrCat("ps ", task->index);
  (void)log::Init(who, level);  // checked above
  return ps::Run(who, *task, &stop);
}
