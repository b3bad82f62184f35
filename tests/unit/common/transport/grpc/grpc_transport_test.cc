#include "common/transport/grpc/grpc_transport.h"

#include <grpcpp/server_builder.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/tensor/half_copy.h"
#include "common/transport/ps_methods.h"
#include "proto/ps.grpc.pb.h"

namespace lockstep {
namespace {

// A server with generated messages. Answers a pull with `values`.
class PlainPs final : public ParameterServer::Service {
 public:
  PlainPs() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~PlainPs() override { server_->Shutdown(std::chrono::system_clock::now()); }
  ClientOptions options() const {
    return {.address = absl::StrCat("127.0.0.1:", port_), .name = "ps 0"};
  }

  grpc::Status Push(grpc::ServerContext*, const PushRequest* request, PushReply*) override {
    absl::MutexLock lock(&mutex_);
    pushed_ = *request;
    return grpc::Status::OK;
  }
  grpc::Status Pull(grpc::ServerContext*, const PullRequest*, PullReply* reply) override {
    reply->set_version(7);
    reply->set_payload(values);
    return grpc::Status::OK;
  }

  // The last one. ThreadSanitizer does not see what gRPC hands from thread to thread.
  PushRequest pushed() const {
    absl::MutexLock lock(&mutex_);
    return pushed_;
  }

  std::string values;

 private:
  mutable absl::Mutex mutex_;
  PushRequest pushed_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

template <typename Request, typename Reply>
absl::StatusOr<TensorReply<Reply>> CallAndWait(TensorTransport* transport,
                                               const TensorMethod<Request, Reply>& method,
                                               const Request& header,
                                               const std::vector<OutgoingTensor>& tensors) {
  absl::Notification over;
  absl::StatusOr<TensorReply<Reply>> result;
  transport->Call(method, header, tensors, /*accepts_references=*/true,
                  [&](absl::StatusOr<TensorReply<Reply>> reply) {
                    result = std::move(reply);
                    over.Notify();
                  });
  over.WaitForNotification();
  return result;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_CASE("Tensors travel as the payload of their message: indices, values, and parts of them") {
  PlainPs ps;
  GrpcTransport transport(ps.options());
  const std::vector<int64_t> rows = {3, 5};
  std::vector<float> values(4096);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto bytes = std::as_bytes(std::span(values));
  PushRequest header;
  header.set_push_seq(9);
  const std::string all = BytesOf(rows) + BytesOf(values);
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, OutgoingTensor::kToTheEnd}, {0, 16}, {8, 16}, {16, 4096}, {24, 8}}) {
    CAPTURE(offset, size);
    const auto reply =
        CallAndWait(&transport, kPush, header,
                    {{.values = bytes.first(12)},
                     {.values = bytes, .row_indices = rows, .offset = offset, .size = size}});
    REQUIRE(reply.ok());
    CHECK(ps.pushed().push_seq() == 9);
    CHECK(ps.pushed().payload() == BytesOf(values).substr(0, 12) + all.substr(offset, size));
    CHECK_FALSE(ps.pushed().in_memory());
  }
}

TEST_CASE("Rounded tensors are rounded as their message leaves, each into memory of its own") {
  PlainPs ps;
  GrpcTransport transport(ps.options());
  const std::vector<float> values = {1.0009765625f, -2.5f, 3.1415926f, 65504.0f};
  const auto bytes = std::as_bytes(std::span(values));
  for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
    std::vector<uint16_t> rounded(values.size());
    Narrow(values, type, rounded.data());
    const auto reply = CallAndWait(&transport, kPush, PushRequest(),
                                   {{.values = bytes, .rounded_to = type, .offset = 2, .size = 4},
                                    {.values = bytes},
                                    {.values = bytes, .rounded_to = type}});
    REQUIRE(reply.ok());
    CHECK(ps.pushed().payload() ==
          BytesOf(rounded).substr(2, 4) + BytesOf(values) + BytesOf(rounded));
  }
}

TEST_CASE("The tensors of a reply are owned, and copied or widened into targets of their size") {
  PlainPs ps;
  GrpcTransport transport(ps.options());
  const std::vector<float> values(70'000, 1.5f);
  ps.values = BytesOf(values);
  const auto reply = CallAndWait(&transport, kPull, PullRequest(), {});
  REQUIRE(reply.ok());
  CHECK(reply->header->version() == 7);
  CHECK(reply->tensors.lifetime() == ReceivedTensors::Lifetime::kOwned);
  std::vector<float> first(69'999), rest(1), widened(140'000);
  const std::span<std::byte> targets[] = {std::as_writable_bytes(std::span(first)),
                                          std::as_writable_bytes(std::span(rest))};
  CHECK(reply->tensors.CopyTo(targets).ok());
  CHECK(first == std::vector<float>(69'999, 1.5f));
  CHECK(rest[0] == 1.5f);
  CHECK(absl::IsInvalidArgument(reply->tensors.CopyTo(std::span(targets).first(1))));
  const std::span<float> floats[] = {widened};
  CHECK(reply->tensors.WidenTo(DType::kBFloat16, floats).ok());
  CHECK(widened[1] == 1.5f);  // the upper half of each float
  CHECK(absl::IsInvalidArgument(reply->tensors.WidenTo(DType::kFloat32, floats)));
}

TEST_CASE("Bytes alone are agreed on, and a cancelled transport refuses calls") {
  PlainPs ps;
  GrpcTransport transport(ps.options());
  absl::Status references;
  transport.Open(WorkerIdentity(), [&](absl::StatusOr<TransportInfo> info) {
    references = info.ok() ? info->references : info.status();
  });
  CHECK(absl::IsUnavailable(references));
  CHECK_FALSE(transport.SendsByReference(std::as_bytes(std::span("any"))));
  transport.Cancel();
  CHECK(absl::IsCancelled(CallAndWait(&transport, kPull, PullRequest(), {}).status()));
}

}  // namespace
}  // namespace lockstep
