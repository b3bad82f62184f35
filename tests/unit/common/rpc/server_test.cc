#include "common/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/client/status_client.h"
#include "common/rpc/credentials.h"
#include "common/rpc/limits.h"
#include "common/status/status_service.h"
#include "tests/unit/common/rpc/stream_events.h"

namespace lockstep {
namespace {

// A server with nothing but a status service, for "`role` `task`".
struct Running {
  Running(const std::string& role, uint32_t task, const std::string& host = "127.0.0.1")
      : service(MakeStatusService({.role = role, .task = task, .incarnation = 5}, nullptr)),
        server(Server::Start({.address = host + ":0",
                              .insecure = true,
                              .owner = absl::StrCat(role, " ", task),
                              .services = {service.get()}})) {
    REQUIRE(server.ok());
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", (*server)->port()); }

  const std::unique_ptr<rpc::Service> service;
  absl::StatusOr<std::unique_ptr<Server>> server;
};

// A unary call with bytes for bodies.
grpc::Status Call(grpc::Channel* channel, const std::string& method, const std::string& request,
                  std::string* reply) {
  grpc::GenericStub stub(std::shared_ptr<grpc::Channel>(channel, [](grpc::Channel*) {}));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const grpc::Slice slice(request);
  const grpc::ByteBuffer request_buffer(&slice, 1);
  grpc::ByteBuffer reply_buffer;
  absl::Notification over;
  grpc::Status status;
  stub.UnaryCall(&context, method, {}, &request_buffer, &reply_buffer,
                 [&](const grpc::Status& result) {
                   status = result;
                   over.Notify();
                 });
  over.WaitForNotification();
  std::vector<grpc::Slice> slices;
  if (status.ok() && reply_buffer.Dump(&slices).ok())
    for (const grpc::Slice& part : slices)
      reply->append(reinterpret_cast<const char*>(part.begin()), part.size());
  return status;
}

// The protobuf of grpc.health.v1 written by hand: request { service = 1 }, response { status = 1 }.
std::string HealthRequest(const std::string& service) {
  return service.empty() ? "" : std::string("\x0a") + static_cast<char>(service.size()) + service;
}

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";

grpc::Status CheckHealth(grpc::Channel* channel, const std::string& service, std::string* reply) {
  return Call(channel, kCheck, HealthRequest(service), reply);
}

constexpr int kServing = 1, kNotServing = 2, kServiceUnknown = 3;

int Health(grpc::Channel* channel, const std::string& service) {
  std::string reply;
  REQUIRE(CheckHealth(channel, service, &reply).ok());
  REQUIRE(reply.size() == 2);
  return reply[1];
}

TEST_CASE("A server tells who it is, whether it lives and whether it is ready") {
  const Running running("worker", 3);
  const auto status = FetchStatus(running.address(), absl::Seconds(5));
  REQUIRE(status.ok());
  CHECK(status->role() == "worker");
  CHECK(status->task() == 3);
  CHECK(status->pid() == getpid());

  const auto channel = rpc::MakeChannel(running.address());
  CHECK(Health(channel.get(), "") == kServing);
  CHECK(Health(channel.get(), "ready") == kNotServing);
  (*running.server)->SetReady(true);
  CHECK(Health(channel.get(), "ready") == kServing);
}

TEST_CASE("The health of a service that is not known is not found") {
  const Running running("ps", 0);
  std::string reply;
  const grpc::Status status =
      CheckHealth(rpc::MakeChannel(running.address()).get(), "lockstep.ParameterServer", &reply);
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(status.error_message().find("expected none (is it alive?) or \"ready\"") !=
        std::string::npos);
}

TEST_CASE("Reflection and channelz are served") {
  const Running running("worker", 3);
  const auto channel = rpc::MakeChannel(running.address());
  std::string reply;
  CHECK(Call(channel.get(), "/grpc.channelz.v1.Channelz/GetServers", "", &reply).ok());
  // A stream; an empty one ends well where the method is known.
  CHECK(Call(channel.get(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "",
             &reply)
            .error_code() != grpc::StatusCode::UNIMPLEMENTED);
  CHECK(Call(channel.get(), "/lockstep.NoService/NoMethod", "", &reply).error_code() ==
        grpc::StatusCode::UNIMPLEMENTED);
}

TEST_CASE("Only this machine may ask for the connections of a process") {
  const Running running("worker", 3, "0.0.0.0");
  const auto channel = rpc::MakeChannel(running.address());
  std::string reply;
  CHECK(Call(channel.get(), "/grpc.channelz.v1.Channelz/GetServers", "", &reply).error_code() ==
        grpc::StatusCode::UNIMPLEMENTED);
  CHECK(FetchStatus(running.address(), absl::Seconds(5)).ok());
}

TEST_CASE("Who holds the port is named, and the same task is told apart") {
  const Running running("worker", 3);
  const auto start = [&](const std::string& owner) {
    return Server::Start({.address = running.address(), .owner = owner}).status();
  };
  const absl::Status other = start("ps 0");
  CHECK(absl::IsUnavailable(other));
  CHECK(absl::StrContains(other.message(), absl::StrCat("worker 3, pid ", getpid())));
  CHECK(absl::StrContains(other.message(), running.address()));
  const absl::Status same = start("worker 3");
  CHECK(absl::IsFailedPrecondition(same));
  CHECK(absl::StrContains(same.message(),
                          absl::StrCat("worker 3 is already running as pid ", getpid())));
}

TEST_CASE("A second chief is refused as a second worker is") {
  const Running running("chief", 0);
  const absl::Status same =
      Server::Start({.address = running.address(), .owner = "chief"}).status();
  CHECK(absl::IsFailedPrecondition(same));
  CHECK(absl::StrContains(same.message(),
                          absl::StrCat("chief is already running as pid ", getpid())));
}

TEST_CASE("Of several chiefs the same one is told apart from another one") {
  const Running running("chief", 1);
  const auto start = [&](const std::string& owner) {
    return Server::Start({.address = running.address(), .owner = owner}).status();
  };
  const absl::Status same = start("chief 1");
  CHECK(absl::IsFailedPrecondition(same));
  CHECK(absl::StrContains(same.message(),
                          absl::StrCat("chief 1 is already running as pid ", getpid())));
  const absl::Status other = start("chief 0");
  CHECK(absl::IsUnavailable(other));
  CHECK(absl::StrContains(other.message(), absl::StrCat("chief 1, pid ", getpid())));
}

TEST_CASE("Other machines are let in only on request") {
  const absl::Status refused = Server::Start({.address = "0.0.0.0:0", .owner = "ps 0"}).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "--insecure"));
  CHECK(Server::Start({.address = "0.0.0.0:0", .insecure = true, .owner = "ps 0"}).ok());
}

TEST_CASE("A message over the limit is refused by the receiver") {
  const Running running("worker", 3);
  const auto channel = grpc::CreateChannel(running.address(), grpc::InsecureChannelCredentials());
  std::string reply;
  const grpc::Status status = Call(channel.get(), "/lockstep.StatusService/GetStatus",
                                   std::string(rpc::kMaxMessageBytes + 1, '\0'), &reply);
  CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_CASE("A compressed message is refused before it is inflated") {
  const Running running("worker", 3);
  grpc::GenericStub stub(
      grpc::CreateChannel(running.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Slice slice(std::string(1 << 20, '\0'));
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  absl::Notification over;
  grpc::Status status;
  stub.UnaryCall(&context, "/lockstep.StatusService/GetStatus", {}, &request, &reply,
                 [&](const grpc::Status& result) {
                   status = result;
                   over.Notify();
                 });
  over.WaitForNotification();
  CHECK(status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
}

// A stream of the reflection service with one request answered or refused, and still open.
class ReflectionStream {
 public:
  ReflectionStream(grpc::GenericStub* stub, grpc::CompletionQueue* queue)
      : stream_(stub->PrepareCall(
            &context_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", queue)) {
    const grpc::Slice list_services(std::string("\x3a\x00", 2));
    stream_->StartCall(nullptr);
    Next(queue);
    stream_->Write(grpc::ByteBuffer(&list_services, 1), nullptr);
    Next(queue);
    stream_->Read(&reply_, nullptr);
    answered_ = Next(queue);
    if (answered_) return;
    stream_->Finish(&status_, nullptr);
    Next(queue);
  }
  ~ReflectionStream() { context_.TryCancel(); }

  bool answered() const { return answered_; }
  const grpc::Status& status() const { return status_; }

 private:
  static bool Next(grpc::CompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    queue->Next(&tag, &ok);
    return ok;
  }

  grpc::ClientContext context_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer reply_;
  bool answered_ = false;
  grpc::Status status_;
};

TEST_CASE("Open reflection streams hold few threads, and other calls are answered") {
  const Running running("worker", 3);
  const auto channel = grpc::CreateChannel(running.address(), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<ReflectionStream>> streams;
  int answered = 0;
  for (int i = 0; i < 40; ++i) {
    streams.push_back(std::make_unique<ReflectionStream>(&stub, &queue));
    answered += streams.back()->answered() ? 1 : 0;
  }
  CHECK(answered > 0);
  CHECK(answered <= 8);
  CHECK(streams.back()->status().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(FetchStatus(running.address(), absl::Seconds(5)).ok());
}

// A call of Health.Watch, read one status at a time.
class Watch {
 public:
  Watch(const std::string& address, const std::string& service)
      : Watch(address, grpc::Slice(HealthRequest(service))) {}
  Watch(const std::string& address, const grpc::Slice& request)
      : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        stub_(channel_),
        stream_(stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stream_->StartCall(nullptr);
    REQUIRE(Next());
    stream_->WriteLast(grpc::ByteBuffer(&request, 1), grpc::WriteOptions(), nullptr);
    Next();  // fails where the call has ended already
  }
  ~Watch() {
    queue_.Shutdown();
    while (Next()) continue;
  }

  // -1: the call has ended.
  int Status() {
    grpc::ByteBuffer reply;
    stream_->Read(&reply, nullptr);
    std::vector<grpc::Slice> slices;
    if (!Next() || !reply.Dump(&slices).ok() || slices.size() != 1) return -1;
    return slices[0].size() == 2 ? slices[0].begin()[1] : -1;
  }
  grpc::StatusCode End() { return rpc::EndOf(stream_.get(), &queue_); }

 private:
  bool Next() { return rpc::NextSucceeds(&queue_); }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST_CASE("A request for the health that is no name of a service is refused") {
  const Running running("ps", 0);
  // Half a million empty fields that no request has: parsed, they would take 32 MiB.
  std::string fields;
  for (int i = 0; i < 1 << 19; ++i) fields.append("\x12\x00", 2);
  std::string reply;
  const grpc::Status status =
      Call(rpc::MakeChannel(running.address()).get(), kCheck, fields, &reply);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(absl::StrContains(status.error_message(), "1048576 bytes; expected at most 1024"));
  Watch watch(running.address(), grpc::Slice(fields));
  REQUIRE(watch.Status() == -1);
  CHECK(watch.End() == grpc::StatusCode::INVALID_ARGUMENT);
  Watch cut(running.address(), grpc::Slice("\x0a"));
  REQUIRE(cut.Status() == -1);
  CHECK(cut.End() == grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_CASE("Who watches the health of a process hears each change of it, and its end") {
  const Running running("worker", 3);
  Watch life(running.address(), ""), ready(running.address(), "ready");
  Watch nobody(running.address(), "lockstep.Chief");
  CHECK(life.Status() == kServing);
  CHECK(ready.Status() == kNotServing);
  CHECK(nobody.Status() == kServiceUnknown);
  (*running.server)->SetReady(true);
  CHECK(ready.Status() == kServing);
  (*running.server)->SetReady(true);  // no change
  (*running.server)->Shutdown(absl::Seconds(10));
  for (Watch* watch : {&life, &ready}) CHECK(watch->Status() == kNotServing);
  for (Watch* watch : {&life, &ready, &nobody}) {
    CHECK(watch->Status() == -1);
    CHECK(watch->End() == grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_CASE("Watches beyond a limit are refused, and those that have ended make room") {
  const Running running("ps", 0);
  std::vector<std::unique_ptr<Watch>> watches;
  for (size_t i = 0; i < rpc::kMaxHealthWatches; ++i) {
    watches.push_back(std::make_unique<Watch>(running.address(), ""));
    REQUIRE(watches.back()->Status() == kServing);
  }
  Watch refused(running.address(), "");
  CHECK(refused.Status() == -1);
  CHECK(refused.End() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(FetchStatus(running.address(), absl::Seconds(5)).ok());
  watches.pop_back();
  // The server hears of the cancelled call a moment later.
  int status = -1;
  for (int tries = 0; tries < 1000 && status != kServing; ++tries) {
    status = Watch(running.address(), "").Status();
  }
  CHECK(status == kServing);
}

TEST_CASE("After a shutdown the port is free, and calls fail as unavailable") {
  auto running = std::make_unique<Running>("worker", 3);
  const std::string address = running->address();
  (*running->server)->Shutdown(absl::Seconds(1));
  const auto status = FetchStatus(address, absl::Seconds(5));
  CHECK(absl::IsUnavailable(status.status()));
  CHECK(absl::StrContains(status.status().message(), address));
  CHECK(Server::Start({.address = address, .owner = "worker 3"}).ok());
}

}  // namespace
}  // namespace lockstep
