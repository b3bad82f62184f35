#include "common/transport/grpc/raw_channel.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/job_over.h"
#include "common/client/chief_client.h"
#include "common/rpc/event_queue.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "proto/ps.pb.h"

namespace lockstep {
namespace {

// Nobody listens there: each call ends on the queue's thread while the client goes.
void EndWithACallInFlight(rpc::EventQueue* queue) {
  for (int round = 0; round < 50; ++round) {
    int ended = 0;
    {
      const auto client =
          MakeChiefClient({.address = "127.0.0.1:1", .name = "nobody", .queue = queue});
      client->Call(kReportError, ReportErrorRequest(), [&](const auto& reply) {
        CHECK_FALSE(reply.ok());
        ++ended;
      });
    }
    REQUIRE(ended == 1);
  }
}

TEST_CASE("A client that goes ends its calls, on a queue of its own") {
  EndWithACallInFlight(nullptr);
}

TEST_CASE("A client that goes ends its calls, on a queue that others use") {
  rpc::EventQueue queue;
  EndWithACallInFlight(&queue);
}

TEST_CASE("A call after failed ones reaches a peer that has come meanwhile") {
  const std::string address = absl::StrCat("unix-abstract:lockstep-raw-channel-test-", getpid());
  const auto client = MakeChiefClient({.address = address, .name = "chief"});
  const auto call = [&client] {
    absl::Status status;
    absl::Notification ended;
    client->Call(kReportError, ReportErrorRequest(), [&](const auto& reply) {
      status = reply.status();
      ended.Notify();
    });
    ended.WaitForNotification();
    return status;
  };
  for (int failures = 0; failures < 8; ++failures) REQUIRE(absl::IsUnavailable(call()));
  grpc::CallbackGenericService nothing;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&nothing);
  const std::unique_ptr<grpc::Server> peer = builder.BuildAndStart();
  REQUIRE(peer != nullptr);
  absl::Status reached = call();
  // A call fails at once while gRPC pauses between attempts to connect.
  const absl::Time most = absl::Now() + absl::Seconds(10);
  while (absl::IsUnavailable(reached) && absl::Now() < most) reached = call();
  CHECK(absl::IsUnimplemented(reached));
}

// Takes calls and never reads what they bring, so that their payload stays with the caller.
class DeafServer {
 public:
  DeafServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    service_.RequestCall(&context_, &stream_, queue_.get(), queue_.get(), nullptr);
  }
  ~DeafServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) continue;
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  int port_ = 0;
  grpc::AsyncGenericService service_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("A call ends though its payload was never sent, and lets go of it") {
  DeafServer server;
  RawChannel channel({.address = server.address(), .name = "deaf"});
  const std::vector<std::byte> payload(8 << 20);
  const std::span<const std::byte> spans[] = {payload};
  absl::Notification over;
  absl::Status status;
  channel.Call("/a/b", PushRequest(), spans, absl::Milliseconds(100),
               Callback<RawReply>([&](const absl::StatusOr<RawReply>& reply) {
                 status = reply.status();
                 over.Notify();
               }));
  over.WaitForNotification();
  CHECK(absl::IsDeadlineExceeded(status));
}

// Answers each call with as many bytes, and the status, that a test wants.
class TalkativeServer {
 public:
  explicit TalkativeServer(size_t reply_bytes, const grpc::Status& status = grpc::Status::OK)
      : reply_(std::string(reply_bytes, 'x')) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    service_.reply = &reply_;
    service_.status = status;
    server_ = builder.BuildAndStart();
  }
  ~TalkativeServer() { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  class Service final : public grpc::CallbackGenericService {
   public:
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      class Answer final : public grpc::ServerGenericBidiReactor {
       public:
        Answer(const std::string& reply, const grpc::Status& status) {
          const grpc::Slice slice(reply);
          reply_ = grpc::ByteBuffer(&slice, 1);
          StartWriteAndFinish(&reply_, grpc::WriteOptions(), status);
        }
        void OnDone() override { delete this; }

       private:
        grpc::ByteBuffer reply_;
      };
      return new Answer(*reply, status);
    }
    const std::string* reply = nullptr;
    grpc::Status status;
  };

  int port_ = 0;
  const std::string reply_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

// The status of a call of a channel to the server.
absl::Status CallOnce(const std::string& address, std::span<const std::byte> payload) {
  RawChannel channel({.address = address, .name = "ps 1"});
  const std::span<const std::byte> spans[] = {payload};
  absl::Notification over;
  absl::Status status;
  channel.Call("/a/b", PushRequest(), spans, absl::Seconds(30),
               Callback<RawReply>([&](const absl::StatusOr<RawReply>& reply) {
                 status = reply.status();
                 over.Notify();
               }));
  over.WaitForNotification();
  return status;
}

TEST_CASE("A message that is too large is refused for good: it is not that there is no room now") {
  SECTION("on its way there") {
    TalkativeServer server(0);
    const std::vector<std::byte> payload(rpc::kMaxMessageBytes);
    const absl::Status status = CallOnce(server.address(), payload);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains(absl::StrCat("ps 1 (", server.address(), ")")) &&
                   Catch::Contains("(16777221 vs. 16777216)") && Catch::Contains("Remedy"));
  }
  SECTION("on its way back") {
    TalkativeServer server(rpc::kMaxMessageBytes + 1);
    const absl::Status status = CallOnce(server.address(), {});
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains(absl::StrCat("ps 1 (", server.address(), ")")) &&
                   Catch::Contains("(16777217 vs. 16777216)") && Catch::Contains("Remedy"));
  }
  SECTION("the largest passes") {
    TalkativeServer server(rpc::kMaxMessageBytes);
    CHECK(CallOnce(server.address(), {}).ok());
  }
}

TEST_CASE("A peer that cancels a call is not available, unless it says that the job is over") {
  SECTION("as gRPC does for a process that stops") {
    TalkativeServer server(0, grpc::Status(grpc::StatusCode::CANCELLED, ""));
    const absl::Status status = CallOnce(server.address(), {});
    CHECK(absl::IsUnavailable(status));
    CHECK(absl::StrContains(status.message(), "ps 1"));
    CHECK(absl::StrContains(status.message(), "it has cancelled the call"));
  }
  SECTION("the job is over") {
    TalkativeServer server(0, rpc::ToGrpc(JobOverError()));
    CHECK(IsJobOver(CallOnce(server.address(), {})));
  }
}

TEST_CASE("A client that cancels its calls is told so") {
  DeafServer server;
  RawChannel channel({.address = server.address(), .name = "deaf"});
  absl::Notification over;
  absl::Status status;
  channel.Call("/a/b", PushRequest(), {}, absl::Minutes(1),
               Callback<RawReply>([&](const absl::StatusOr<RawReply>& reply) {
                 status = reply.status();
                 over.Notify();
               }));
  channel.Cancel();
  over.WaitForNotification();
  CHECK(absl::IsCancelled(status));
}

}  // namespace
}  // namespace lockstep
