// Between gRPC's status and abseil's: the codes are the same numbers.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace lockstep::rpc {

absl::Status FromGrpc(const grpc::Status& status);
// Long messages are cut: gRPC carries them in a header of limited size.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace lockstep::rpc
