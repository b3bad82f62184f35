#include "common/rpc/grpc_status.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::rpc {
namespace {

TEST_CASE("Every canonical status survives the way to gRPC and back") {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "variable 3");
    CHECK(FromGrpc(ToGrpc(status)) == status);
  }
}

TEST_CASE("A message too long for a header is cut") {
  const grpc::Status status = ToGrpc(absl::InternalError(std::string(100000, 'x')));
  CHECK(status.error_code() == grpc::StatusCode::INTERNAL);
  CHECK(status.error_message().size() < 4000);
}

}  // namespace
}  // namespace lockstep::rpc
