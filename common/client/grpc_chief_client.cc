// ChiefClient over gRPC.
#include <grpcpp/channel.h>

#include <utility>

#include "common/client/chief_client.h"
#include "common/client/control_calls.h"
#include "common/rpc/channel.h"
#include "common/rpc/limits.h"
#include "proto/chief.grpc.pb.h"

namespace lockstep {
namespace {

using ChiefAsync = Chief::StubInterface::async_interface;

class GrpcChiefClient final : public ChiefClient {
 public:
  explicit GrpcChiefClient(const ClientOptions& options)
      : stub_(Chief::NewStub(rpc::MakeChannel(options.address))), calls_(options) {}

  void RegisterTask(const RegisterTaskRequest& request, Done<RegisterTaskReply> done) override {
    calls_.Start(stub_->async(), &ChiefAsync::RegisterTask, "RegisterTask", request,
                 rpc::kParkedDeadline, std::move(done));
  }
  void Heartbeat(const HeartbeatRequest& request, Done<HeartbeatReply> done) override {
    calls_.Start(stub_->async(), &ChiefAsync::Heartbeat, "Heartbeat", request,
                 rpc::kControlDeadline, std::move(done));
  }
  void ReportError(const ReportErrorRequest& request, Done<ReportErrorReply> done) override {
    calls_.Start(stub_->async(), &ChiefAsync::ReportError, "ReportError", request,
                 rpc::kControlDeadline, std::move(done));
  }

 private:
  const std::unique_ptr<Chief::Stub> stub_;
  ControlCalls calls_;
};

}  // namespace

std::unique_ptr<ChiefClient> MakeChiefClient(const ClientOptions& options) {
  return std::make_unique<GrpcChiefClient>(options);
}

}  // namespace lockstep
