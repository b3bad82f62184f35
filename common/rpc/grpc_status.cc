#include "common/rpc/grpc_status.h"

#include <string>

namespace lockstep::rpc {
namespace {

// All headers together may have 8 KiB, and escaping can triple a message.
constexpr size_t kMaxMessage = 2000;

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(status.message().substr(0, kMaxMessage)));
}

}  // namespace lockstep::rpc
