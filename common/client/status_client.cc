#include "common/client/status_client.h"

#include "common/client/status_reader.h"

namespace lockstep {

absl::StatusOr<ProcessStatus> FetchStatus(const std::string& address, absl::Duration timeout,
                                          const rpc::Credentials* credentials) {
  return StatusReader(address, credentials).Read(timeout);
}

}  // namespace lockstep
