// Between gRPC's status and abseil's: the codes are the same numbers.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace lockstep::rpc {

// With the exit code that ToGrpc has sent along, if there is one.
absl::Status FromGrpc(const grpc::Status& status);

// Long messages are cut: gRPC carries them in a header of limited size. An exit code set with
// WithExitCode travels in the details, which are a google.rpc.Status as gRPC's clients expect:
// its detail is a google.protobuf.Int32Value.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace lockstep::rpc
