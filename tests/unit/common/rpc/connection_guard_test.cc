// Which connections a server closes.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "common/rpc/service.h"
#include "common/status/status_service.h"
#include "tests/unit/common/rpc/stream_events.h"

namespace lockstep::rpc {
namespace {

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kStatus[] = "/lockstep.StatusService/GetStatus";

// Streams of one connection, one operation at a time.
class Client {
 public:
  explicit Client(const std::string& address)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {}
  ~Client() {
    for (const auto& call : calls_) call->context.TryCancel();
    queue_.Shutdown();
    while (Next()) continue;
  }

  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  };

  // A call without a message.
  Call* Start(const std::string& path) {
    Call* const call = calls_.emplace_back(std::make_unique<Call>()).get();
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
    call->stream = stub_.PrepareCall(&call->context, path, &queue_);
    call->stream->StartCall(nullptr);
    REQUIRE(Next());
    return call;
  }
  void Write(Call* call, const std::string& message) {
    const grpc::Slice slice(message);
    call->stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    REQUIRE(Next());
  }
  // Whether a message has come before the call has ended.
  bool Read(Call* call) {
    grpc::ByteBuffer message;
    call->stream->Read(&message, nullptr);
    return Next();
  }
  grpc::StatusCode End(Call* call) { return EndOf(call->stream.get(), &queue_); }

 private:
  bool Next() { return NextSucceeds(&queue_); }

  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_CASE("Requests on a stream of reflection hide no unfinished calls of their connection") {
  const auto service = MakeStatusService({.role = "ps", .task = 0, .incarnation = 5}, nullptr);
  const auto server =
      Server::Start({.address = "127.0.0.1:0", .owner = "ps 0", .services = {service.get()}});
  REQUIRE(server.ok());
  Client client(absl::StrCat("127.0.0.1:", (*server)->port()));
  Client::Call* const reflection = client.Start(kReflection);
  for (int i = 0; i < 300; ++i) {
    client.Write(reflection, std::string("\x3a\x00", 2));  // list_services
    REQUIRE(client.Read(reflection));
  }
  for (int i = 0; i < 200; ++i) client.Start(kStatus);
  CHECK_FALSE(client.Read(reflection));
  CHECK(client.End(reflection) == grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace lockstep::rpc
