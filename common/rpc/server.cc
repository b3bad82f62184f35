#include "common/rpc/server.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/limits.h"
#include "common/rpc/listen_address.h"
#include "common/rpc/port_holder.h"

namespace lockstep {
namespace {

using CompletionQueues = std::vector<std::unique_ptr<grpc::ServerCompletionQueue>>;

constexpr char kReadyService[] = "ready";

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// Services that every gRPC server of this process has from then on.
void EnableCommonServices() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::channelz::experimental::InitChannelzService();
  });
}

void SetPolicy(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(rpc::kMaxMessageBytes);
  builder->SetMaxSendMessageSize(rpc::kMaxMessageBytes);
  // Otherwise a second process on the same port starts, and each gets half of the calls.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(rpc::kKeepaliveInterval));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(rpc::kKeepaliveTimeout));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              Milliseconds(rpc::kMinPingInterval));
}

class GrpcServer final : public Server {
 public:
  GrpcServer(std::unique_ptr<grpc::Server> server, CompletionQueues queues, int port,
             std::function<void()> quiesce_queues)
      : queues_(std::move(queues)),
        server_(std::move(server)),
        port_(port),
        quiesce_queues_(std::move(quiesce_queues)) {
    SetReady(false);
  }
  ~GrpcServer() override { Shutdown(absl::ZeroDuration()); }

  int port() const override { return port_; }
  grpc::ServerCompletionQueue* completion_queue(int index) override { return queues_[index].get(); }
  void SetReady(bool ready) override {
    server_->GetHealthCheckService()->SetServingStatus(kReadyService, ready);
  }
  void Shutdown(absl::Duration grace) override {
    absl::call_once(shutdown_, [this, grace] {
      server_->GetHealthCheckService()->Shutdown();
      server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
      if (quiesce_queues_) quiesce_queues_();
      for (const auto& queue : queues_) queue->Shutdown();
    });
  }

 private:
  CompletionQueues queues_;  // must outlive the server
  std::unique_ptr<grpc::Server> server_;
  const int port_;
  const std::function<void()> quiesce_queues_;
  absl::once_flag shutdown_;
};

// Why `options.address` is not free; OK when it is.
absl::Status CheckAddress(const ServerOptions& options) {
  if (!options.insecure) LOCKSTEP_RETURN_IF_ERROR(rpc::CheckLoopback(options.address));
  const absl::Status bound = rpc::TryBind(options.address);
  return absl::IsUnavailable(bound) ? rpc::DescribePortHolder(options.address, options.owner)
                                    : bound;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAddress(options));
  EnableCommonServices();
  grpc::ServerBuilder builder;
  SetPolicy(&builder);
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  CompletionQueues queues;
  for (int i = 0; i < options.completion_queues; ++i)
    queues.push_back(builder.AddCompletionQueue());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    // A queue of a server that did not start must be emptied all the same.
    for (const auto& queue : queues) {
      queue->Shutdown();
      void* tag;
      bool ok;
      while (queue->Next(&tag, &ok)) continue;
    }
    // Somebody may have taken the address since it was free.
    LOCKSTEP_RETURN_IF_ERROR(CheckAddress(options));
    return absl::UnavailableError(
        absl::StrCat(options.owner, " cannot listen on ", options.address));
  }
  return std::make_unique<GrpcServer>(std::move(server), std::move(queues), port,
                                      options.quiesce_queues);
}

}  // namespace lockstep
