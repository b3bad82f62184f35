#include "common/client/status_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "common/rpc/grpc_status.h"
#include "common/transport/grpc/peer.h"
#include "proto/status.grpc.pb.h"

namespace lockstep {

absl::StatusOr<ProcessStatus> FetchStatus(const std::string& address, absl::Duration timeout,
                                          const rpc::Credentials* credentials) {
  grpc::ClientContext context;
  if (credentials != nullptr) credentials->AddTo(&context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  const auto stub = StatusService::NewStub(rpc::MakeChannel(address, credentials));
  ProcessStatus status;
  const grpc::Status result = stub->GetStatus(&context, GetStatusRequest(), &status);
  if (result.ok()) return status;
  return NamePeer({.address = address, .name = "task"}, "GetStatus", timeout,
                  rpc::FromGrpc(result));
}

}  // namespace lockstep
