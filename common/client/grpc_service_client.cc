// ServiceClient over gRPC.
#include <utility>

#include "common/client/chief_client.h"
#include "common/client/ps_control.h"
#include "common/transport/grpc/raw_channel.h"

namespace lockstep {
namespace {

template <typename Service>
class GrpcServiceClient final : public ServiceClient<Service> {
 public:
  explicit GrpcServiceClient(const ClientOptions& options) : channel_(options) {}

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    channel_.Call(method.path, request, method.deadline, reply, std::move(done));
  }

 private:
  RawChannel channel_;
};

}  // namespace

std::unique_ptr<PsControl> MakePsControl(const ClientOptions& options) {
  return std::make_unique<GrpcServiceClient<PsControlService>>(options);
}

std::unique_ptr<ChiefClient> MakeChiefClient(const ClientOptions& options) {
  return std::make_unique<GrpcServiceClient<ChiefService>>(options);
}

}  // namespace lockstep
