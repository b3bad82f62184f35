// A unary method of an asynchronous service, answered now or much later.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/service.h"

namespace lockstep::rpc {

template <typename Request, typename Reply>
class UnaryCall : public std::enable_shared_from_this<UnaryCall<Request, Reply>> {
 public:
  struct Method {
    // Asks gRPC for the next call, as the generated service's Request<Method> does.
    std::function<void(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Reply>*,
                       grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*)>
        await;
    // The callback may be called on any thread, or not at all. After the caller went away it does
    // nothing, and all that it keeps is a pointer.
    std::function<void(const Request&, Callback<Reply>)> handle;
  };

  UnaryCall(std::shared_ptr<const Method> method, const ServingQueue& queue)
      : method_(std::move(method)), queue_(queue), responder_(&context_) {}

  static void Await(const std::shared_ptr<const Method>& method, const ServingQueue& queue) {
    const auto call = std::make_shared<UnaryCall>(method, queue);
    // Given back only if a call arrives.
    call->context_.AsyncNotifyWhenDone(call->ended_.tag());
    method->await(&call->context_, &call->request_, &call->responder_, queue.queue, queue.queue,
                  call->arrived_.Arm());
  }

 private:
  void Arrived(bool ok) {
    if (!ok) return;  // the server stops
    ended_.Arm();
    pass_ = queue_.gate->Enter();
    if (!pass_) return;
    Await(method_, queue_);
    const absl::Status allowed = CheckSpeaker(context_, SpeakerOf(request_));
    if (!allowed.ok()) return Answer(allowed);
    method_->handle(request_, [call = this->weak_from_this()](absl::StatusOr<Reply> reply) {
      if (const auto alive = call.lock()) alive->Answer(std::move(reply));
    });
  }

  void Answer(absl::StatusOr<Reply> reply) {
    if (reply.ok()) {
      responder_.Finish(*reply, grpc::Status::OK, answered_.Arm());
    } else {
      responder_.FinishWithError(ToGrpc(reply.status()), answered_.Arm());
    }
  }

  void Answered(bool) {}
  void Ended(bool) {}

  const std::shared_ptr<const Method> method_;
  const ServingQueue queue_;
  Gate::Pass pass_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Reply> responder_;
  CallEvent<UnaryCall> arrived_{this, &UnaryCall::Arrived};
  CallEvent<UnaryCall> answered_{this, &UnaryCall::Answered};
  // Comes when the call is over for gRPC, answered or cancelled: until then it is kept.
  CallEvent<UnaryCall> ended_{this, &UnaryCall::Ended};
};

// `method` is a member of `service`: &Generated::AsyncService::RequestGetStatus. `handle` runs on
// the queue's thread, so it must not block.
template <typename Service, typename Generated, typename Request, typename Reply>
void ServeUnary(Service* service,
                void (Generated::*method)(grpc::ServerContext*, Request*,
                                          grpc::ServerAsyncResponseWriter<Reply>*,
                                          grpc::CompletionQueue*, grpc::ServerCompletionQueue*,
                                          void*),
                const ServingQueue& queue,
                std::type_identity_t<std::function<void(const Request&, Callback<Reply>)>> handle) {
  using Call = UnaryCall<Request, Reply>;
  Call::Await(std::make_shared<const typename Call::Method>(
                  typename Call::Method{std::bind_front(method, service), std::move(handle)}),
              queue);
}

}  // namespace lockstep::rpc
