#include "common/status/status_service.h"

#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/version.h"
#include "common/rpc/process.h"
#include "common/rpc/unary_method.h"
#include "common/wire/message_checksum.h"
#include "proto/status.grpc.pb.h"

namespace lockstep {
namespace {

class CollectedStatusService final : public rpc::Service {
 public:
  CollectedStatusService(ProcessIdentity identity, CollectStatus collect)
      : identity_(std::move(identity)),
        collect_(std::move(collect)),
        host_(HostName()),
        start_(Clock::Real()->Monotonic()) {}

  rpc::RawMethods* methods() override { return &methods_; }
  void Serve(const rpc::ServingQueue& queue) override {
    rpc::ServeUnary<GetStatusRequest, ProcessStatus>(
        &methods_, queue, [this](const GetStatusRequest&, Callback<ProcessStatus> respond) {
          if (!collect_) return respond(Identified(ProcessStatus()));
          collect_(
              [this, respond = std::move(respond)](absl::StatusOr<ProcessStatus> status) mutable {
                if (!status.ok()) return respond(std::move(status));
                respond(Identified(*std::move(status)));
              });
        });
  }

 private:
  ProcessStatus Identified(ProcessStatus status) const {
    status.set_role(identity_.role);
    status.set_task(identity_.task);
    status.set_incarnation(identity_.incarnation);
    status.set_version(kVersion);
    status.set_host(host_);
    status.set_pid(getpid());
    status.set_corrupt_messages(wire::NumCorruptMessages());
    status.set_uptime_seconds(absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start_));
    return status;
  }

  const ProcessIdentity identity_;
  const CollectStatus collect_;
  const std::string host_;
  const absl::Duration start_;
  rpc::RawMethods methods_{StatusService::service_full_name()};
};

}  // namespace

std::unique_ptr<rpc::Service> MakeStatusService(const ProcessIdentity& identity,
                                                CollectStatus collect) {
  return std::make_unique<CollectedStatusService>(identity, std::move(collect));
}

}  // namespace lockstep
