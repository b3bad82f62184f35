// What a ps that hangs while memory is exchanged with it does to everybody else.
#include "common/transport/grpc_shm/shared_memory_connection.h"

#include <grpcpp/server_builder.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/fs/file_descriptor.h"
#include "common/rpc/event_queue.h"
#include "common/shm/packet.h"
#include "common/transport/grpc_shm/shared_memory_transport.h"
#include "common/transport/ps_methods.h"
#include "proto/ps.grpc.pb.h"

namespace lockstep {
namespace {

// Names a socket for the exchange on which nobody answers, as a ps does that is stopped between the
// two; answers everything else.
class SilentPs final : public ParameterServer::Service {
 public:
  SilentPs() : socket_name_(absl::StrCat("lockstep-silent-", getpid())) {
    // Blocking, unlike PacketSocket: accept waits for the worker.
    socket_ = FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(shm::BindTo(socket_, socket_name_).ok());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~SilentPs() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // Returns when a worker has come to exchange memory; it waits until the connection is closed.
  FileDescriptor Accept() { return FileDescriptor(accept(socket_.get(), nullptr, nullptr)); }

  grpc::Status AttachMemory(grpc::ServerContext*, const AttachMemoryRequest*,
                            AttachMemoryReply* reply) override {
    reply->set_socket(socket_name_);
    return grpc::Status::OK;
  }
  grpc::Status DequeueToken(grpc::ServerContext*, const DequeueTokenRequest*,
                            DequeueTokenReply* reply) override {
    reply->set_step(5);
    return grpc::Status::OK;
  }

 private:
  const std::string socket_name_;
  FileDescriptor socket_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("A ps that hangs while memory is exchanged keeps no other answer back") {
  SilentPs ps;
  rpc::EventQueue queue;
  const auto memory = shm::Segment::Create("test", 4096);
  REQUIRE(memory.ok());
  SharedMemoryTransport client({.address = ps.address(), .name = "ps 0", .queue = &queue}, *memory);
  bool is_refused = false;
  absl::Notification exchanged;
  client.Open(WorkerIdentity(), [&](const absl::StatusOr<TransportInfo>& info) {
    is_refused = info.ok() && !info->references.ok();
    exchanged.Notify();
  });
  FileDescriptor worker = ps.Accept();
  int64_t step = 0;
  bool came_before = false;
  absl::Notification answered;
  client.Call(kDequeueToken, DequeueTokenRequest(), {}, false,
              [&](const absl::StatusOr<TensorReply<DequeueTokenReply>>& token) {
                if (token.ok()) step = token->header->step();
                came_before = !exchanged.HasBeenNotified();
                answered.Notify();
              });
  answered.WaitForNotification();
  CHECK(came_before);
  CHECK(step == 5);
  worker = FileDescriptor();
  exchanged.WaitForNotification();
  CHECK(is_refused);
}

TEST_CASE("A client that goes while memory is exchanged waits for that, and tells it") {
  SilentPs ps;
  const auto memory = shm::Segment::Create("test", 4096);
  REQUIRE(memory.ok());
  auto client = std::make_unique<SharedMemoryTransport>(
      ClientOptions{.address = ps.address(), .name = "ps 0"}, *memory);
  bool is_told = false;
  client->Open(WorkerIdentity(), [&](const absl::StatusOr<TransportInfo>&) { is_told = true; });
  FileDescriptor worker = ps.Accept();
  worker = FileDescriptor();
  client.reset();
  CHECK(is_told);
}

TEST_CASE("A ps that is late with the exchange is asked again, five times at the most") {
  SilentPs ps;
  SharedMemoryConnection connection(nullptr, nullptr, nullptr, absl::Milliseconds(1));
  AttachMemoryReply offer;
  REQUIRE(ps.AttachMemory(nullptr, nullptr, &offer).ok());
  for (int i = 1; i <= 5; ++i) {
    REQUIRE(connection.Begin(WorkerIdentity()).has_value());
    absl::StatusOr<TransportInfo> told;
    absl::Notification answered;
    connection.Await([&](absl::StatusOr<TransportInfo> info) {
      told = std::move(info);
      answered.Notify();
    });
    connection.Complete(offer);
    const FileDescriptor worker = ps.Accept();
    answered.WaitForNotification();
    if (i < 5) CHECK(absl::IsUnavailable(told.status()));
    if (i == 5) CHECK(absl::IsDeadlineExceeded(told->references));
  }
  CHECK_FALSE(connection.Begin(WorkerIdentity()).has_value());
}

}  // namespace
}  // namespace lockstep
