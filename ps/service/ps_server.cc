#include "ps/service/ps_server.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/cpus.h"
#include "common/config/cluster_spec.h"
#include "common/log/log.h"
#include "common/rpc/alarm_timer.h"
#include "common/rpc/server.h"
#include "common/status/command_summary.h"
#include "common/status/status_service.h"
#include "ps/service/caller_contacts.h"
#include "ps/service/command_calls.h"
#include "ps/service/command_watch.h"
#include "ps/service/convert.h"

namespace lockstep::ps {
namespace {

// One thread moves and sums about 2 GB/s; more threads than half the cores take them from the
// workers on the same host.
int Queues() { return std::clamp(UsableCpus() / 2, 1, 4); }

// A standby asks again after 0.3 s at most.
constexpr absl::Duration kTellStandbys = absl::Seconds(1);

class GrpcPsServer final : public PsServer {
 public:
  GrpcPsServer(Shard* shard, const PsServerOptions& options)
      : shard_(shard),
        identity_(options.identity),
        watch_(options.clock),
        contacts_(
            options.clock,
            [shard](const WorkerIdentity& worker) { return shard->Admit(worker).ok(); },
            log::Warning),
        service_(shard, options.memory, &watch_, &contacts_, options.identity,
                 WithReadiness(options.events)),
        status_(
            MakeStatusService({.role = "ps",
                               .task = options.identity.task_index,
                               .incarnation = options.identity.incarnation.value()},
                              [this](Callback<ProcessStatus> respond) { respond(Collect()); })) {}
  ~GrpcPsServer() override { Shutdown(absl::ZeroDuration()); }

  absl::Status Listen(const PsServerOptions& options) {
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start({.address = options.address,
                       .insecure = options.insecure,
                       .owner = absl::StrCat("ps ", options.identity.task_index),
                       .credentials = options.credentials,
                       .services = {&service_, status_.get()},
                       .queues = Queues(),
                       .name_patience = options.name_patience,
                       .stop = options.stop});
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    timer_.emplace(server_->queue());
    watch_.Start(&*timer_);
    contacts_.Start(&*timer_);
    listening_.store(true);
    if (created_.load()) server_->SetReady(true);
    return absl::OkStatus();
  }

  int port() const override { return server_->port(); }

  void Leave() override { service_.Leave(); }

  void TellStandbys() override {
    if (watch_.MayBeAsked()) absl::SleepFor(kTellStandbys);
  }

  void Shutdown(absl::Duration grace) override {
    shard_->Stop();
    watch_.Stop();
    contacts_.Stop();
    timer_.reset();
    if (server_ == nullptr) return;
    server_->Shutdown(grace);
  }

 private:
  // Ready for workers: the variables exist.
  PsEvents WithReadiness(PsEvents events) {
    events.created = [this, created = std::move(events.created)] {
      created_.store(true);
      if (listening_.load()) server_->SetReady(true);
      if (created) created();
    };
    return events;
  }

  ProcessStatus Collect() const {
    const ShardReport report = shard_->Report();
    ProcessStatus status;
    *status.mutable_shard() = ToProto(report);
    if (identity_.task_index == kStepShard) {
      const CommandStatus command = watch_.Status();
      // The chief may have moved, and have told that with its view alone.
      const std::string newest = identity_.clusters->texts().front();
      *status.mutable_shard()->mutable_command() =
          Summarize(command, ChiefAddressIn(newest, command.chief_index()).value_or(""));
    }
    status.set_global_step(identity_.task_index == kStepShard ? report.state.global_step.value()
                                                              : report.state.shard_step.value());
    status.set_state(report.state.has_variables ? "training" : "starting");
    if (!report.state.has_variables) status.set_waiting_for("the chief to create the variables");
    return status;
  }

  Shard* const shard_;
  std::atomic<bool> listening_ = false;
  std::atomic<bool> created_ = false;
  const PsIdentity identity_;
  CommandWatch watch_;
  CallerContacts contacts_;
  PsService service_;
  const std::unique_ptr<rpc::Service> status_;
  std::unique_ptr<Server> server_;
  std::optional<rpc::AlarmTimer> timer_;  // on the server's queue
};

}  // namespace

absl::StatusOr<std::unique_ptr<PsServer>> PsServer::Start(Shard* shard,
                                                          const PsServerOptions& options) {
  auto server = std::make_unique<GrpcPsServer>(shard, options);
  if (const absl::Status status = server->Listen(options); !status.ok()) return status;
  return server;
}

}  // namespace lockstep::ps
