// Calls with tensors over gRPC: the slices that gRPC received go to the handler, and the slices of
// a reply hold its tensors. Nothing is copied.
#pragma once

#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/raw_methods.h"
#include "common/rpc/served_call.h"
#include "common/rpc/service.h"
#include "common/transport/grpc/checksums.h"
#include "common/transport/grpc/reference_server.h"
#include "common/transport/tensor_call.h"
#include "common/wire/byte_buffer.h"

namespace lockstep {

// How a server serves one method.
template <typename Request, typename Reply>
struct GrpcTensorMethod {
  rpc::RawMethod raw;
  // Looks at the serialized request, without its tensors, before it is parsed.
  std::function<absl::Status(absl::string_view)> check;
  // On the queue's thread, so it must not block.
  std::function<void(const std::shared_ptr<TensorCall<Request, Reply>>&)> handle;
  const ReferenceServer* references = nullptr;  // null: all tensors go as bytes
  // Whether the job has transport.checksums, so that each request must have one. Null: no.
  std::function<bool()> expects_checksums = nullptr;
  // Asking gRPC for the end of each call costs a small push 4 %. Without it a call is kept until it
  // is answered, also when its caller has gone.
  bool watches_callers = false;
};

template <typename Request, typename Reply>
class GrpcTensorCall final : public TensorCall<Request, Reply>,
                             public rpc::ServedCall<GrpcTensorCall<Request, Reply>> {
  using Base = rpc::ServedCall<GrpcTensorCall>;
  friend Base;

 public:
  using Method = GrpcTensorMethod<Request, Reply>;

  // `method` and what the queue names outlive the call.
  GrpcTensorCall(std::shared_ptr<const Method> method, const rpc::ServingQueue& queue)
      : Base(queue), method_(std::move(method)), responder_(&context_) {}

  static void Await(const std::shared_ptr<const Method>& method, const rpc::ServingQueue& queue) {
    const auto call = std::make_shared<GrpcTensorCall>(method, queue);
    // Given back only if a call arrives.
    if (method->watches_callers) call->context_.AsyncNotifyWhenDone(call->ended_.tag());
    method->raw.await(&call->context_, &call->body_, &call->responder_, queue.queue, queue.queue,
                      call->arrived_.Arm());
  }

  const Request& request() const override { return *request_; }

  absl::StatusOr<ReceivedTensors> TakeTensors() override {
    std::shared_ptr<const wire::ReceivedPayload> payload = std::move(payload_);
    const ReceivedTensors::Segments* const segments = &payload->spans();
    std::shared_ptr<const ReceivedTensors::Segments> held(std::move(payload), segments);
    if (method_->references == nullptr) return ReceivedTensors(std::move(held));
    return method_->references->Resolve(*request_, std::move(held));
  }

  bool AcceptsReferences() const override { return lent_ != nullptr; }
  void OnCancelled(absl::AnyInvocable<void()> cancelled) override {
    cancelled_ = std::move(cancelled);
  }

  void Respond(absl::StatusOr<std::shared_ptr<Reply>> reply,
               const std::vector<OutgoingTensor>& tensors,
               std::shared_ptr<const void> owner) override {
    absl::Status status = reply.status();
    const bool by_reference = !tensors.empty() && tensors.front().by_reference;
    if (status.ok() && by_reference)
      status = method_->references->Refer(tensors, lent_, reply->get());
    if (!status.ok()) return this->Refuse(status);
    std::vector<wire::Bytes> payload;
    if (!by_reference) {
      payload.reserve(tensors.size());
      for (const OutgoingTensor& tensor : tensors) payload.push_back(tensor.values);
    }
    const grpc::ByteBuffer message = wire::Encode(**reply, payload, owner);
    AddToReply(message, &context_);
    responder_.Finish(message, grpc::Status::OK, answered_.Arm());
  }

 private:
  using Base::caller_;
  using Base::context_;
  using Base::message_bytes_;
  using Base::queue_;

  void Arrived(bool ok) {
    if (!ok) return;  // the server stops
    if (method_->watches_callers) ended_.Arm();
    if (!this->Enter()) return;
    Await(method_, queue_);
    message_bytes_ = body_.Length();
    if (const absl::Status status = Decode(); !status.ok()) {
      Respond(status, {}, nullptr);
    } else {
      method_->handle(this->shared_from_this());
    }
    // What the answer does not need, however long that is waited for. Of the request nothing says
    // how much it takes: it may have fields that nobody reads.
    payload_.reset();
    body_.Clear();
    request_.reset();
  }

  absl::Status Decode() {
    LOCKSTEP_RETURN_IF_ERROR(this->CheckCaller(method_->raw.path));
    const bool must_have = method_->expects_checksums && method_->expects_checksums();
    LOCKSTEP_RETURN_IF_ERROR(CheckRequest(context_, body_, must_have, request_.get()));
    LOCKSTEP_ASSIGN_OR_RETURN(wire::ReceivedPayload payload,
                              wire::DecodeWithPayload(body_, request_.get(), method_->check));
    LOCKSTEP_RETURN_IF_ERROR(rpc::CheckSpeaker(caller_, rpc::SpeakerOf(*request_)));
    payload_ = std::make_shared<const wire::ReceivedPayload>(std::move(payload));
    if (method_->references != nullptr) lent_ = method_->references->LentTo(*request_);
    return absl::OkStatus();
  }

  void SendError(const grpc::Status& error) { responder_.FinishWithError(error, answered_.Arm()); }

  void Answered(bool) {}

  void Ended(bool) {
    absl::AnyInvocable<void()> cancelled = std::move(cancelled_);
    if (cancelled != nullptr && context_.IsCancelled()) cancelled();
    this->DropRefusalIfCancelled();
  }

  const std::shared_ptr<const Method> method_;
  grpc::ByteBuffer body_;
  std::shared_ptr<Request> request_ = NewArenaMessage<Request>();
  std::shared_ptr<const wire::ReceivedPayload> payload_;
  std::shared_ptr<const void> lent_;
  absl::AnyInvocable<void()> cancelled_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_;
  rpc::CallEvent<GrpcTensorCall> arrived_{this, &GrpcTensorCall::Arrived};
  rpc::CallEvent<GrpcTensorCall> answered_{this, &GrpcTensorCall::Answered};
  // Comes when the call is over for gRPC, answered or cancelled: until then it is kept.
  rpc::CallEvent<GrpcTensorCall> ended_{this, &GrpcTensorCall::Ended};
};

}  // namespace lockstep
