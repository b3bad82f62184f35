#include "common/rpc/server.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <optional>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/base/status_macros.h"
#include "common/rpc/acceptor.h"
#include "common/rpc/alarm_timer.h"
#include "common/rpc/caller_guard.h"
#include "common/rpc/connection_guard.h"
#include "common/rpc/credentials.h"
#include "common/rpc/event_queue.h"
#include "common/rpc/extra_messages.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/health_service.h"
#include "common/rpc/limits.h"
#include "common/rpc/listen_address.h"
#include "common/rpc/name_wait.h"
#include "common/rpc/port_holder.h"
#include "common/rpc/refusal_sender.h"
#include "common/rpc/service.h"
#include "common/rpc/unknown_methods.h"

namespace lockstep {
namespace {

constexpr absl::Duration kHandshake = absl::Seconds(10);
constexpr int kMaxDebuggingThreads = 8;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// gRPC's log, and services that every gRPC server of this process has from then on. They are gRPC's
// own and wait on threads, which poll nothing: the event queues do it for them. Calls beyond
// kMaxDebuggingThreads are refused with RESOURCE_EXHAUSTED.
void InitGrpc() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    rpc::SendGrpcLog();
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::channelz::experimental::InitChannelzService();
  });
}

// Channelz tells addresses and counters of every connection of the process.
class WithoutChannelz final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins,
                  [](const auto& plugin) { return plugin->name() == "channelz_service"; });
  }
};

void SetPolicy(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(rpc::kMaxMessageBytes);
  builder->SetMaxSendMessageSize(rpc::kMaxMessageBytes);
  // A client that connects speaks HTTP/2 at once.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(kHandshake));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, rpc::kMaxStreams);
  // gRPC's own services hold a thread for each open stream.
  grpc::ResourceQuota threads;
  threads.SetMaxThreads(kMaxDebuggingThreads);
  builder->SetResourceQuota(threads);
  // gRPC inflates a compressed message whole before it looks at the size.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(rpc::kKeepaliveInterval));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(rpc::kKeepaliveTimeout));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              Milliseconds(rpc::kMinPingInterval));
}

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(std::shared_ptr<const rpc::Credentials> credentials)
      : credentials_(std::move(credentials)) {}
  ~GrpcServer() override {
    Shutdown(absl::ZeroDuration());
    refusal_timer_.reset();
    // What was awaited and never came still looks at the server.
    for (const auto& queue : queues_) queue->Drain();
  }

  absl::Status Serve(const ServerOptions& options, rpc::ListeningSockets listening) {
    grpc::ServerBuilder builder;
    SetPolicy(&builder);
    if (!rpc::CheckLoopback(options.address).ok())
      builder.SetOption(std::make_unique<WithoutChannelz>());
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        credentials_ == nullptr ? grpc::InsecureServerCredentials() : credentials_->ForServer());
    const rpc::CallerCheck* callers = credentials_ == nullptr ? nullptr : credentials_->callers();
    for (rpc::Service* service : options.services) builder.RegisterService(service->methods());
    builder.RegisterService(health_.methods());
    unknown_.Register(&builder);
    rpc::GuardGrpcMethods(callers, &extra_messages_, &builder);
    std::vector<rpc::ServingQueue> serving;
    for (int i = 0; i < options.queues; ++i) {
      auto queue = builder.AddCompletionQueue();
      serving.push_back({queue.get(), &calls_, callers, nullptr});
      queues_.push_back(std::make_unique<rpc::EventQueue>(std::move(queue)));
    }
    refusal_timer_.emplace(queues_[0].get());
    refusals_.emplace(&*refusal_timer_, Clock::Real());
    for (rpc::ServingQueue& queue : serving) queue.refusals = &*refusals_;
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::InternalError(absl::StrCat("gRPC cannot serve on ", options.address));
    }
    for (const rpc::ServingQueue& queue : serving) {
      for (rpc::Service* service : options.services) service->Serve(queue);
      health_.Serve(queue);
      unknown_.Serve(queue);
    }
    port_ = listening.port;
    acceptor_.emplace(std::move(listening.sockets),
                      rpc::Acceptor::Options{.max_descriptors = rpc::MaxDescriptorsForConnections(),
                                             .serve = [this](int connection) { Take(connection); },
                                             .period = rpc::ConnectionGuard::kPeriod,
                                             .look =
                                                 [this](bool is_full) {
                                                   guard_.CheckConnections(
                                                       is_full, Clock::Real()->Monotonic());
                                                 }});
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  rpc::EventQueue* queue() override { return queues_[0].get(); }
  void SetReady(bool ready) override { health_.SetReady(ready); }
  void Shutdown(absl::Duration grace) override {
    absl::call_once(shutdown_, [this, grace] {
      if (acceptor_) acceptor_->Stop();
      health_.Stop();
      if (refusals_) refusals_->Stop();
      if (server_ != nullptr) server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
      calls_.Close();
    });
  }

 private:
  void Take(int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection;
    guard_.Add(connection);
    connections_->HandleNewConnection(&parameters);
  }

  const std::shared_ptr<const rpc::Credentials> credentials_;  // null: everybody may call
  Gate calls_;  // a pass for each call that is served
  rpc::HealthService health_;
  rpc::UnknownMethods unknown_;
  rpc::ExtraMessages extra_messages_;
  std::optional<rpc::RefusalSender> refusals_;
  std::vector<std::unique_ptr<rpc::EventQueue>> queues_;  // outlive the server
  std::optional<rpc::AlarmTimer> refusal_timer_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  rpc::ConnectionGuard guard_{&extra_messages_};  // of the acceptor's thread
  std::optional<rpc::Acceptor> acceptor_;
  int port_ = 0;
  absl::once_flag shutdown_;
};

absl::StatusOr<rpc::ListeningSockets> Bind(const ServerOptions& options) {
  const bool encrypts = options.credentials != nullptr && options.credentials->encrypts();
  if (!options.insecure && !encrypts) {
    LOCKSTEP_RETURN_IF_ERROR(rpc::CheckLoopback(options.address));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<rpc::SocketAddress> addresses,
      rpc::WaitForName(options.address, {.patience = options.name_patience,
                                         .pause = [stop = options.stop](absl::Duration time) {
                                           return rpc::PauseUnless(stop, time);
                                         }}));
  absl::StatusOr<rpc::ListeningSockets> listening = rpc::Listen(options.address, addresses);
  if (!absl::IsUnavailable(listening.status())) return listening;
  return rpc::DescribePortHolder(options.address, options.owner, options.credentials.get());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(rpc::ListeningSockets listening, Bind(options));
  InitGrpc();
  auto server = std::make_unique<GrpcServer>(options.credentials);
  LOCKSTEP_RETURN_IF_ERROR(server->Serve(options, std::move(listening)));
  return server;
}

}  // namespace lockstep
