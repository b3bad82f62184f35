// A unary method of an asynchronous service, answered now or much later.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "common/base/status_macros.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/limits.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/raw_methods.h"
#include "common/rpc/request_body.h"
#include "common/rpc/served_call.h"
#include "common/rpc/service.h"

namespace lockstep::rpc {

template <typename Request, typename Reply>
class UnaryCall final : public ServedCall<UnaryCall<Request, Reply>> {
  using Base = ServedCall<UnaryCall>;
  friend Base;

 public:
  struct Method {
    RawMethod raw;
    // The callback may be called on any thread, or not at all. After the caller went away it does
    // nothing, and all that it keeps is a pointer. The request is gone when the handler returns.
    std::function<void(const Request&, Callback<Reply>)> handle;
    size_t max_bytes = kMaxMessageBytes;  // of a request; a larger one is not parsed
  };

  UnaryCall(std::shared_ptr<const Method> method, const ServingQueue& queue)
      : Base(queue), method_(std::move(method)), responder_(&context_) {}

  static void Await(const std::shared_ptr<const Method>& method, const ServingQueue& queue) {
    const auto call = std::make_shared<UnaryCall>(method, queue);
    // Given back only if a call arrives.
    call->context_.AsyncNotifyWhenDone(call->ended_.tag());
    method->raw.await(&call->context_, &call->body_, &call->responder_, queue.queue, queue.queue,
                      call->arrived_.Arm());
  }

 private:
  using Base::caller_;
  using Base::context_;
  using Base::message_bytes_;
  using Base::queue_;

  void Arrived(bool ok) {
    if (!ok) return;  // the server stops
    ended_.Arm();
    if (!this->Enter()) return;
    Await(method_, queue_);
    message_bytes_ = body_.Length();
    Request request;
    if (const absl::Status status = Admit(&request); !status.ok()) {
      body_.Clear();
      return this->Refuse(status);
    }
    method_->handle(request, [call = this->weak_from_this()](absl::StatusOr<Reply> reply) {
      if (const auto alive = call.lock()) alive->Answer(reply);
    });
  }

  // Parses the request once its caller may call.
  absl::Status Admit(Request* request) {
    LOCKSTEP_RETURN_IF_ERROR(this->CheckCaller(method_->raw.path));
    LOCKSTEP_RETURN_IF_ERROR(ParseRequest(method_->raw.path, method_->max_bytes, &body_, request));
    return CheckSpeaker(caller_, SpeakerOf(*request));
  }

  void Answer(const absl::StatusOr<Reply>& reply) {
    if (!reply.ok()) return this->Refuse(reply.status());
    grpc::ByteBuffer body;
    bool is_own = false;
    const grpc::Status status = grpc::SerializationTraits<Reply>::Serialize(*reply, &body, &is_own);
    responder_.Finish(body, status, answered_.Arm());
  }

  void SendError(const grpc::Status& error) { responder_.FinishWithError(error, answered_.Arm()); }

  void Answered(bool) {}
  void Ended(bool) { this->DropRefusalIfCancelled(); }

  const std::shared_ptr<const Method> method_;
  grpc::ByteBuffer body_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_;
  CallEvent<UnaryCall> arrived_{this, &UnaryCall::Arrived};
  CallEvent<UnaryCall> answered_{this, &UnaryCall::Answered};
  // Comes when the call is over for gRPC, answered or cancelled: until then it is kept.
  CallEvent<UnaryCall> ended_{this, &UnaryCall::Ended};
};

// `handle` runs on the queue's thread, so it must not block. A request above `max_bytes` ends with
// INVALID_ARGUMENT.
template <typename Request, typename Reply>
void ServeUnary(RawMethod method, const ServingQueue& queue,
                std::function<void(const Request&, Callback<Reply>)> handle,
                size_t max_bytes = kMaxMessageBytes) {
  using Call = UnaryCall<Request, Reply>;
  Call::Await(std::make_shared<const typename Call::Method>(
                  typename Call::Method{std::move(method), std::move(handle), max_bytes}),
              queue);
}

// The method of the service that takes a Request.
template <typename Request, typename Reply>
void ServeUnary(RawMethods* service, const ServingQueue& queue,
                std::function<void(const Request&, Callback<Reply>)> handle) {
  ServeUnary<Request, Reply>(service->Of<Request>(), queue, std::move(handle));
}

}  // namespace lockstep::rpc
