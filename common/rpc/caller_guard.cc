#include "common/rpc/caller_guard.h"

#include <grpc/grpc.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/rpc/grpc_status.h"

namespace lockstep::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

class Guard final : public Interceptor {
 public:
  Guard(const CallerCheck* callers, ExtraMessages* extra, ServerRpcInfo* call)
      : callers_(callers), extra_(extra), call_(call) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE) &&
        std::exchange(has_message_, true)) {
      extra_->Add(call_->server_context()->peer());
    }
    if (callers_ != nullptr &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      grpc::ServerContextBase* const context = call_->server_context();
      std::optional<security::Caller> caller;
      const absl::Status status = callers_->Check(call_->method(), *context, &caller);
      if (!status.ok()) End(context->c_call(), ToGrpc(status));
    }
    methods->Proceed();
  }

 private:
  // What the handler sends afterwards comes after the end of the stream, and goes nowhere.
  static void End(grpc_call* call, const grpc::Status& status) {
    grpc_call_cancel_with_status(call, static_cast<grpc_status_code>(status.error_code()),
                                 status.error_message().c_str(), nullptr);
  }

  const CallerCheck* const callers_;
  ExtraMessages* const extra_;
  ServerRpcInfo* const call_;  // owns this
  bool has_message_ = false;
};

class GuardFactory final : public ServerInterceptorFactoryInterface {
 public:
  GuardFactory(const CallerCheck* callers, ExtraMessages* extra)
      : callers_(callers), extra_(extra) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    return absl::StartsWith(call->method(), "/grpc.") ? new Guard(callers_, extra_, call) : nullptr;
  }

 private:
  const CallerCheck* const callers_;
  ExtraMessages* const extra_;
};

}  // namespace

void GuardGrpcMethods(const CallerCheck* callers, ExtraMessages* extra,
                      grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<GuardFactory>(callers, extra));
  builder->experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace lockstep::rpc
