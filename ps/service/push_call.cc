#include "ps/service/push_call.h"

#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/wire/byte_buffer.h"
#include "ps/service/convert.h"
#include "ps/service/memory_desk.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

void PushCall::Await(const DataPlane& plane) {
  const auto call = std::make_shared<PushCall>(plane);
  plane.methods->RequestPush(&call->context_, &call->request_, &call->responder_, plane.queue.queue,
                             plane.queue.queue, call->arrived_.Expect());
}

void PushCall::Arrived(bool ok) {
  if (!ok) return;  // the server stops
  pass_ = plane_.queue.gate->Enter();
  if (!pass_) return;
  Await(plane_);
  const absl::StatusOr<PushReply> reply = Handle();
  request_.Clear();
  if (reply.ok()) {
    responder_.Finish(wire::Encode(*reply), grpc::Status::OK, answered_.Expect());
  } else {
    responder_.FinishWithError(rpc::ToGrpc(reply.status()), answered_.Expect());
  }
}

absl::StatusOr<PushReply> PushCall::Handle() {
  PushRequest request;
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::ReceivedPayload payload,
                            wire::DecodeWithPayload(request_, &request));
  LOCKSTEP_ASSIGN_OR_RETURN(PushOrder order, FromProto(request));
  order.payload = payload.spans();
  if (request.in_memory() && !request.ask()) LOCKSTEP_RETURN_IF_ERROR(Locate(request, &order));
  LOCKSTEP_ASSIGN_OR_RETURN(const PushResult result, plane_.shard->Push(order));
  return ToProto(result, order);
}

absl::Status PushCall::Locate(const PushRequest& request, PushOrder* order) const {
  const absl::Status located = plane_.memory == nullptr
                                   ? absl::NotFoundError("this ps exchanges no memory")
                                   : plane_.memory->Locate(request, order);
  if (located.ok()) return located;
  // Who may not push is told so rather than that it has attached nothing.
  LOCKSTEP_RETURN_IF_ERROR(plane_.shard->Admit(order->worker));
  return located;
}

void PushCall::Answered(bool) {}

}  // namespace lockstep::ps
