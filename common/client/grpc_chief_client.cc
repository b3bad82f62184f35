// ChiefClient over gRPC.
#include <utility>

#include "common/client/chief_client.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc/raw_channel.h"

namespace lockstep {
namespace {

class GrpcChiefClient final : public ChiefClient {
 public:
  explicit GrpcChiefClient(const ClientOptions& options) : channel_(options) {}

  void RegisterTask(const RegisterTaskRequest& request, Done<RegisterTaskReply> done) override {
    channel_.Call("/lockstep.Chief/RegisterTask", request, rpc::kParkedDeadline, std::move(done));
  }
  void Heartbeat(const HeartbeatRequest& request, Done<HeartbeatReply> done) override {
    channel_.Call("/lockstep.Chief/Heartbeat", request, rpc::kControlDeadline, std::move(done));
  }
  void ReportError(const ReportErrorRequest& request, Done<ReportErrorReply> done) override {
    channel_.Call("/lockstep.Chief/ReportError", request, rpc::kControlDeadline, std::move(done));
  }

 private:
  RawChannel channel_;
};

}  // namespace

std::unique_ptr<ChiefClient> MakeChiefClient(const ClientOptions& options) {
  return std::make_unique<GrpcChiefClient>(options);
}

}  // namespace lockstep
