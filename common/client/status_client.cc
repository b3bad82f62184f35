#include "common/client/status_client.h"

#include "common/client/status_reader.h"
#include "common/transport/grpc/peer.h"

namespace lockstep {

absl::StatusOr<ProcessStatus> FetchStatus(const std::string& address, absl::Duration timeout,
                                          const rpc::Credentials* credentials) {
  absl::StatusOr<ProcessStatus> status = StatusReader(address, credentials).Read(timeout);
  if (status.ok()) return status;
  return NamePeer({.address = address, .name = "task"}, "GetStatus", timeout, status.status());
}

}  // namespace lockstep
