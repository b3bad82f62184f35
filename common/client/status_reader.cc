#include "common/client/status_reader.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <utility>

#include "common/rpc/grpc_status.h"
#include "common/transport/grpc/peer.h"
#include "proto/status.grpc.pb.h"

namespace lockstep {

struct StatusReader::Connection {
  std::unique_ptr<StatusService::Stub> stub;
};

StatusReader::StatusReader(std::string address, const rpc::Credentials* credentials)
    : address_(std::move(address)), credentials_(credentials) {}
StatusReader::~StatusReader() = default;

absl::StatusOr<ProcessStatus> StatusReader::Read(absl::Duration timeout) {
  if (connection_ == nullptr) {
    connection_ = std::make_unique<Connection>(
        Connection{StatusService::NewStub(rpc::MakeChannel(address_, credentials_))});
  }
  grpc::ClientContext context;
  if (credentials_ != nullptr) credentials_->AddTo(&context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  ProcessStatus status;
  absl::Status result =
      rpc::FromGrpc(connection_->stub->GetStatus(&context, GetStatusRequest(), &status));
  if (result.ok()) return status;
  // gRPC leaks the socket of a channel that is destroyed during its handshake. The channel is kept
  // after DEADLINE_EXCEEDED, so that each call does not leak one.
  if (!absl::IsDeadlineExceeded(result)) connection_.reset();
  return NamePeer({.address = address_, .name = "task"}, "GetStatus", timeout, result);
}

}  // namespace lockstep
