#include "common/client/ps_ping.h"

#include <utility>

#include "common/transport/grpc/raw_channel.h"

namespace lockstep {
namespace {

constexpr char kPath[] = "/lockstep.ParameterServer/Ping";

class PsPing final : public PeerPing {
 public:
  PsPing(const ClientOptions& options, PingRequest request)
      : request_(std::move(request)), channel_(options) {}

  void Start(absl::Duration deadline, StatusCallback done) override {
    channel_.Call(kPath, request_, deadline, &reply_, std::move(done));
  }

 private:
  const PingRequest request_;
  PingReply reply_;  // has no fields
  RawChannel channel_;
};

}  // namespace

std::unique_ptr<PeerPing> MakePsPing(const ClientOptions& options, const WorkerIdentity& worker,
                                     absl::Duration lease) {
  PingRequest request;
  *request.mutable_worker() = worker;
  request.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(lease)));
  return std::make_unique<PsPing>(options, std::move(request));
}

}  // namespace lockstep
