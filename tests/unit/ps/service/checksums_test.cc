// The server's end of checksums: a message with another checksum changes nothing.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "common/wire/byte_buffer.h"
#include "common/wire/message_checksum.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

constexpr int64_t kElements = 3;

std::string ChecksumOf(const google::protobuf::MessageLite& message) {
  return wire::ChecksumOf(wire::Encode(message));
}

PushRequest Gradient() {
  PushRequest push = PushOf(0, 0, 0, kElements, 0, kElements);
  const std::vector<float> values = {1, 2, 3};
  push.set_payload(values.data(), values.size() * sizeof(float));
  return push;
}

class Client {
 public:
  explicit Client(const RunningPs& ps)
      : stub_(ParameterServer::NewStub(rpc::MakeChannel(ps.address()))) {}

  // `checksum`: empty: none.
  grpc::Status Push(const PushRequest& request, const std::string& checksum) {
    grpc::ClientContext context;
    if (!checksum.empty()) context.AddMetadata(wire::kChecksumKey, checksum);
    PushReply reply;
    return stub_->Push(&context, request, &reply);
  }
  // The checksum of the reply, "none" or "wrong".
  std::string ChecksumOfPull(const std::string& checksum) {
    grpc::ClientContext context;
    if (!checksum.empty()) context.AddMetadata(wire::kChecksumKey, checksum);
    PullReply reply;
    REQUIRE(stub_->Pull(&context, PullOf(0, 0, 0), &reply).ok());
    const auto& metadata = context.GetServerInitialMetadata();
    const auto found = metadata.find(wire::kChecksumKey);
    if (found == metadata.end()) return "none";
    const std::string value(found->second.data(), found->second.size());
    return value == ChecksumOf(reply) ? value : "wrong";
  }

 private:
  std::unique_ptr<ParameterServer::Stub> stub_;
};

CreateVariablesRequest WithChecksums(bool checksums) {
  CreateVariablesRequest request = Variables({kElements});
  request.mutable_transport()->set_checksums(checksums);
  return request;
}

void Create(RunningPs* ps, bool checksums) {
  const auto control = MakePsControl(ps->client());
  REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
  REQUIRE(CallAndWait(*control, kCreateVariables, WithChecksums(checksums)).ok());
}

TEST_CASE(
    "A push with another checksum is DATA_LOSS that names it, and counts only when repeated") {
  RunningPs ps;
  Create(&ps, true);
  Client client(ps);
  const PushRequest push = Gradient();
  PushRequest changed = push;
  changed.mutable_payload()->at(5) ^= 1;
  const grpc::Status status = client.Push(changed, ChecksumOf(push));
  CHECK(status.error_code() == grpc::StatusCode::DATA_LOSS);
  CHECK_THAT(status.error_message(), Catch::StartsWith("PushRequest of ipv4:127.0.0.1:") &&
                                         Catch::Contains("expected CRC32C " + ChecksumOf(push) +
                                                         ", got " + ChecksumOf(changed)) &&
                                         Catch::Contains("its header: worker { job: 99 epoch: 1") &&
                                         Catch::Contains("push_seq: 1 pieces {"));
  CHECK(ps.shard().Report().accepted == 0);
  CHECK(client.Push(push, ChecksumOf(push)).ok());
  CHECK(ps.shard().Report().accepted == 1);
  CHECK(ps.shard().Report().duplicates == 0);
}

TEST_CASE("A changed header is found before its sender, step or variable is looked at") {
  RunningPs ps;
  Create(&ps, true);
  Client client(ps);
  const PushRequest push = Gradient();
  PushRequest other_job = push, other_variable = push;
  other_job.mutable_worker()->set_job(kJob ^ 1);
  other_variable.mutable_pieces(0)->set_variable(64);
  for (const PushRequest& changed : {other_job, other_variable}) {
    CHECK(client.Push(changed, ChecksumOf(push)).error_code() == grpc::StatusCode::DATA_LOSS);
  }
}

TEST_CASE("Without a checksum a message is refused by a job with checksums, and by no other") {
  const bool checksums = GENERATE(true, false);
  RunningPs ps;
  Create(&ps, checksums);
  Client client(ps);
  const grpc::Status status = client.Push(Gradient(), "");
  CHECK(status.error_code() == (checksums ? grpc::StatusCode::DATA_LOSS : grpc::StatusCode::OK));
  CHECK(ps.shard().Report().accepted == (checksums ? 0 : 1));
}

TEST_CASE("A chief that takes over with other checksums makes messages without one welcome") {
  const bool before = GENERATE(true, false);
  RunningPs ps;
  Create(&ps, before);
  Create(&ps, !before);
  CHECK(Client(ps).Push(Gradient(), "").ok());
}

TEST_CASE("A reply has a checksum where its request has one") {
  RunningPs ps;
  Create(&ps, false);
  Client client(ps);
  CHECK(client.ChecksumOfPull("") == "none");
  const std::string checksum = client.ChecksumOfPull(ChecksumOf(PullOf(0, 0, 0)));
  CHECK(checksum != "none");
  CHECK(checksum != "wrong");
}

}  // namespace
}  // namespace lockstep::ps
