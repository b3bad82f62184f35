#include "common/client/stop_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/time/clock.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc/peer.h"
#include "proto/job_control.grpc.pb.h"

namespace lockstep {

absl::StatusOr<StopReply> StopJob(const std::string& address, const rpc::Credentials* credentials) {
  grpc::ClientContext context;
  if (credentials != nullptr) credentials->AddTo(&context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + rpc::kParkedDeadline));
  const auto stub = JobControl::NewStub(rpc::MakeChannel(address, credentials));
  StopReply reply;
  const grpc::Status result = stub->Stop(&context, StopRequest(), &reply);
  if (result.ok()) return reply;
  return NamePeer({.address = address, .name = "chief"}, "Stop", rpc::kParkedDeadline,
                  rpc::FromGrpc(result));
}

}  // namespace lockstep
