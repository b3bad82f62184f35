#include "common/rpc/grpc_status.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"
#include "common/base/limits.h"

namespace lockstep::rpc {
namespace {

TEST_CASE("Every canonical status survives the way to gRPC and back") {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "variable 3");
    CHECK(FromGrpc(ToGrpc(status)) == status);
  }
}

TEST_CASE("An exit code of its own survives the way to gRPC and back") {
  const absl::Status status =
      WithExitCode(absl::InternalError("ckpt-9: write: Input/output error"), ExitCode::kIoError);
  const absl::Status received = FromGrpc(ToGrpc(status));
  CHECK(received == status);
  CHECK(ExitCodeFor(received) == ExitCode::kIoError);
}

TEST_CASE("Details that are none of ours leave the exit code to the status") {
  // A google.rpc.Status with a detail of this type and value.
  const auto received = [](const std::string& type, const std::string& value) {
    const auto field = [](char number, const std::string& bytes) {
      return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} +
             bytes;
    };
    const std::string details = field(3, field(1, type) + field(2, value));
    return ExitCodeFor(FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "no", details)));
  };
  const std::string type = "type.googleapis.com/google.protobuf.Int32Value";
  CHECK(received(type, "\x08\x4a") == ExitCode::kIoError);  // 74
  CHECK(received(type, std::string("\x08\x00", 2)) == ExitCode::kInputNotFound);
  CHECK(received(type, "\x08\x63") == ExitCode::kInputNotFound);  // 99
  CHECK(received(type, "\xff\xff") == ExitCode::kInputNotFound);
  CHECK(received("type.googleapis.com/other", "\x08\x4a") == ExitCode::kInputNotFound);
  CHECK(ExitCodeFor(FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "no", "\x80"))) ==
        ExitCode::kInputNotFound);
}

TEST_CASE("What a peer writes stays on one line of a log or terminal") {
  const grpc::Status forged(grpc::StatusCode::NOT_FOUND, "no\nchief: saved\x1b[2J");
  CHECK(FromGrpc(forged).message() == "no\\nchief: saved\\x1b[2J");
}

TEST_CASE("A message too long for a header is cut") {
  const std::string most(limits::kMaxErrorBytes, 'x');
  const grpc::Status status = ToGrpc(absl::InternalError(most + "x"));
  CHECK(status.error_code() == grpc::StatusCode::INTERNAL);
  CHECK(status.error_message() == most);
  CHECK(ToGrpc(absl::InternalError(most)).error_message() == most);
  // The details repeat it: both together have the 4,000 bytes of one that is escaped.
  const std::string most_detailed(1500, 'x');
  const grpc::Status detailed =
      ToGrpc(WithExitCode(absl::InternalError(most_detailed + "x"), ExitCode::kIoError));
  CHECK(detailed.error_message() == most_detailed);
  CHECK(detailed.error_details().size() < 1600);
}

}  // namespace
}  // namespace lockstep::rpc
