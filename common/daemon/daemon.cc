#include "common/daemon/daemon.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/config/listen.h"
#include "common/daemon/daemon_credentials.h"
#include "common/log/log.h"
#include "common/rpc/process.h"

ABSL_FLAG(std::string, cluster, "",
          "cluster spec file: JSON or text proto. Default: the environment variable TF_CONFIG");
ABSL_FLAG(
    std::string, listen, "",
    "host:port to listen on; default: the address in the cluster spec, which the others dial");
ABSL_FLAG(bool, insecure, false, "listen on an address that other machines can reach, unencrypted");
ABSL_FLAG(double, start_timeout, 120, "seconds to wait for processes that are away");
ABSL_FLAG(std::string, log_level, "info", "info, warning or error");

namespace lockstep {
namespace {

absl::Status Prepare(const DaemonOptions& options, DaemonContext* context,
                     std::optional<RunningCluster>* cluster) {
  const std::string level = absl::GetFlag(FLAGS_log_level);
  LOCKSTEP_RETURN_IF_ERROR(log::Init(context->name, level));
  const auto index = absl::GetFlag(*options.task_index);
  LOCKSTEP_ASSIGN_OR_RETURN(context->task,
                            LoadTask(options.role, absl::GetFlag(FLAGS_cluster), index));
  const bool is_only_chief =
      options.role == Role::kChief && context->task.cluster.Count(Role::kChief) == 1;
  if (!is_only_chief) absl::StrAppend(&context->name, " ", context->task.index);
  LOCKSTEP_RETURN_IF_ERROR(log::Init(context->name, level));
  const double timeout = absl::GetFlag(FLAGS_start_timeout);
  if (!(timeout >= 0)) {
    return UsageError(absl::StrCat("--start_timeout: expected seconds, 0 or more, got ", timeout,
                                   ". Remedy: leave it out for 120"));
  }
  context->start_timeout = absl::Seconds(timeout);
  ServerOptions& serving = context->serving;
  LOCKSTEP_ASSIGN_OR_RETURN(serving.address,
                            ListenAddress(absl::GetFlag(FLAGS_listen), context->task.address()));
  serving.insecure = absl::GetFlag(FLAGS_insecure);
  LOCKSTEP_ASSIGN_OR_RETURN(DaemonCredentials credentials,
                            DaemonCredentials::Load(context->task, serving.address));
  serving.credentials = credentials.get();
  cluster->emplace(context->task, serving.address != context->task.address(),
                   std::move(credentials));
  context->cluster = &cluster->value();
  serving.owner = context->name;
  serving.name_patience = context->start_timeout;
  serving.stop = context->stop->notification();
  return absl::OkStatus();
}

}  // namespace

int RunDaemon(const DaemonOptions& options, int argc, const char* const* argv,
              absl::FunctionRef<absl::Status(const DaemonContext&)> run) {
  OpenStandardStreams();
  DaemonContext context{.name = std::string(Name(options.role))};
  const FlagsResult flags = HandleFlags(context.name, options.usage, argc, argv);
  if (flags.exit) return static_cast<int>(flags.code);
  TuneLocks();
  TuneHeap();
  ShutdownSignal stop;
  context.stop = &stop;
  std::optional<RunningCluster> cluster;
  absl::Status end = Prepare(options, &context, &cluster);
  if (end.ok()) end = run(context);
  if (absl::IsCancelled(end)) return static_cast<int>(ExitCodeFor(end));
  return PrintFailure(context.name, end);
}

absl::Status StoppedWith(ExitCode code) {
  if (code == ExitCode::kDone) return absl::OkStatus();
  return WithExitCode(absl::CancelledError("the process was told to end"), code);
}

}  // namespace lockstep
