#include "common/contact/ps_ping.h"

#include <utility>

#include "common/transport/grpc/raw_channel.h"

namespace lockstep {
namespace {

template <typename Request>
class PsPing final : public PeerPing {
 public:
  PsPing(const ClientOptions& options, const char* path, Request request)
      : path_(path), request_(std::move(request)), channel_(options) {}

  void Start(absl::Duration deadline, StatusCallback done) override {
    channel_.Call(path_, request_, deadline, &reply_, std::move(done));
  }

 private:
  const char* const path_;
  const Request request_;
  PingReply reply_;  // has no fields
  RawChannel channel_;
};

template <typename Request>
PsContacts::MakePing PingsWith(ClientOptions options, Request request) {
  return [options = std::move(options), request = std::move(request)](const std::string& name,
                                                                      const std::string& address) {
    ClientOptions of_ps = options;
    of_ps.name = name;
    of_ps.address = address;
    return MakePsPing(of_ps, request);
  };
}

}  // namespace

std::unique_ptr<PeerPing> MakePsPing(const ClientOptions& options, PingRequest from_worker) {
  return std::make_unique<PsPing<PingRequest>>(options, "/lockstep.ParameterServer/Ping",
                                               std::move(from_worker));
}

std::unique_ptr<PeerPing> MakePsPing(const ClientOptions& options, ServerPingRequest from_server) {
  return std::make_unique<PsPing<ServerPingRequest>>(
      options, "/lockstep.ParameterServer/ServerPing", std::move(from_server));
}

PsContacts::MakePing PsPings(ClientOptions options, PingRequest from_worker) {
  return PingsWith(std::move(options), std::move(from_worker));
}

PsContacts::MakePing PsPings(ClientOptions options, ServerPingRequest from_server) {
  return PingsWith(std::move(options), std::move(from_server));
}

}  // namespace lockstep
