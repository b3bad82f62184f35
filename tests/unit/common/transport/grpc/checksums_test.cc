// The client's end of checksums: what a request carries, and which replies are refused.
#include "common/transport/grpc/checksums.h"

#include <grpcpp/server_builder.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/transport/grpc/grpc_transport.h"
#include "common/transport/ps_methods.h"
#include "common/wire/message_checksum.h"
#include "proto/ps.grpc.pb.h"

namespace lockstep {
namespace {

std::string ChecksumOf(const google::protobuf::MessageLite& message) {
  return wire::ChecksumOf(wire::Encode(message));
}

// Notes the checksum of each request, and gives replies the one that a test wants.
class ChecksummingPs final : public ParameterServer::Service {
 public:
  ChecksummingPs() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ChecksummingPs() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Push(grpc::ServerContext* context, const PushRequest* request,
                    PushReply* reply) override {
    const auto found = context->client_metadata().find(wire::kChecksumKey);
    const bool has_checksum = found != context->client_metadata().end();
    received = has_checksum ? std::string(found->second.data(), found->second.size()) : "none";
    expected = ChecksumOf(*request);
    *reply = pushed;
    return Answer(context);
  }
  grpc::Status Pull(grpc::ServerContext* context, const PullRequest*, PullReply* reply) override {
    *reply = pulled;
    return Answer(context);
  }

  std::string received, expected;  // of the last push
  PushReply pushed;
  PullReply pulled;
  std::string checksum;  // of replies; empty: none

 private:
  grpc::Status Answer(grpc::ServerContext* context) const {
    if (!checksum.empty()) context->AddInitialMetadata(wire::kChecksumKey, checksum);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class Caller {
 public:
  explicit Caller(const ChecksummingPs& ps, bool checksums = true)
      : transport_({.address = ps.address(), .name = "ps 0", .checksums = checksums}) {}

  template <typename Request, typename Reply>
  absl::Status Call(const TensorMethod<Request, Reply>& method, const Request& header,
                    const std::vector<OutgoingTensor>& tensors = {}) {
    absl::Notification over;
    absl::Status status;
    transport_.Call(method, header, tensors, /*accepts_references=*/false,
                    [&](const absl::StatusOr<TensorReply<Reply>>& reply) {
                      status = reply.status();
                      over.Notify();
                    });
    over.WaitForNotification();
    return status;
  }

 private:
  GrpcTransport transport_;
};

TEST_CASE("A request carries the checksum of all its bytes, where the job has checksums") {
  ChecksummingPs ps;
  const std::vector<float> values(5000, 1.5f);
  PushRequest header;
  header.set_push_seq(9);
  ps.checksum = ChecksumOf(ps.pushed);
  Caller caller(ps);
  for (const size_t elements : {size_t{0}, size_t{3}, values.size()}) {
    const auto bytes = std::as_bytes(std::span(values).first(elements));
    CHECK(caller.Call(kPush, header, {{.values = bytes}, {.values = bytes}}).ok());
    CHECK(ps.received == ps.expected);
  }
  CHECK(Caller(ps, /*checksums=*/false).Call(kPush, header).ok());
  CHECK(ps.received == "none");
}

TEST_CASE("A reply with another checksum is DATA_LOSS that names it, and is counted") {
  ChecksummingPs ps;
  ps.pulled.set_version(7);
  ps.pulled.set_payload(std::string(70'000, 'x'));
  Caller caller(ps);
  ps.checksum = ChecksumOf(ps.pulled);
  CHECK(caller.Call(kPull, PullRequest()).ok());
  const uint64_t before = wire::NumCorruptMessages();
  ps.checksum = "ffffffff";
  CHECK(caller.Call(kPull, PullRequest()) ==
        absl::DataLossError(absl::StrCat("PullReply of ps 0 (", ps.address(),
                                         "): changed on its way: ", ps.pulled.ByteSizeLong(),
                                         " bytes, expected CRC32C ffffffff, got ",
                                         ChecksumOf(ps.pulled), "; its header: version: 7")));
  CHECK(absl::IsDataLoss(caller.Call(kPush, PushRequest())));  // without payload, too
  CHECK(wire::NumCorruptMessages() == before + 2);
  CHECK(Caller(ps, /*checksums=*/false).Call(kPull, PullRequest()).ok());
}

TEST_CASE("Only a reply with a payload must have a checksum") {
  ChecksummingPs ps;
  Caller caller(ps);
  CHECK(caller.Call(kPull, PullRequest()).ok());
  CHECK(caller.Call(kPush, PushRequest()).ok());
  ps.pulled.set_payload("1234");
  const absl::Status status = caller.Call(kPull, PullRequest());
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("expected metadata lockstep-crc32c") && Catch::Contains("got none"));
  CHECK(Caller(ps, /*checksums=*/false).Call(kPull, PullRequest()).ok());
}

}  // namespace
}  // namespace lockstep
