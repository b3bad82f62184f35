#include "common/status/status_service.h"

#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/version.h"
#include "common/rpc/process.h"
#include "proto/status.grpc.pb.h"

namespace lockstep {
namespace {

class CollectedStatusService final : public StatusService::CallbackService {
 public:
  CollectedStatusService(ProcessIdentity identity, CollectStatus collect)
      : identity_(std::move(identity)),
        collect_(std::move(collect)),
        host_(HostName()),
        start_(Clock::Real()->Monotonic()) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const GetStatusRequest*,
                                      ProcessStatus* status) override {
    if (collect_) collect_(status);
    status->set_role(identity_.role);
    status->set_task(identity_.task);
    status->set_incarnation(identity_.incarnation);
    status->set_version(kVersion);
    status->set_host(host_);
    status->set_pid(getpid());
    status->set_uptime_seconds(absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start_));
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const ProcessIdentity identity_;
  const CollectStatus collect_;
  const std::string host_;
  const absl::Duration start_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeStatusService(const ProcessIdentity& identity,
                                                 CollectStatus collect) {
  return std::make_unique<CollectedStatusService>(identity, std::move(collect));
}

}  // namespace lockstep
