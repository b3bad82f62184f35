#include "ps/service/push_call.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/wire/byte_buffer.h"
#include "ps/service/convert.h"
#include "ps/service/shared_memory_registry.h"
#include "ps/service/values_payload.h"
#include "ps/service/worker_check.h"
#include "ps/shard/push_pull.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

void PushCall::Await(const DataPlane& plane) {
  const auto call = std::make_shared<PushCall>(plane);
  plane.methods->RequestPush(&call->context_, &call->request_, &call->responder_, plane.queue.queue,
                             plane.queue.queue, call->arrived_.Arm());
}

void PushCall::Arrived(bool ok) {
  if (!ok) return;  // the server stops
  pass_ = plane_.queue.gate->Enter();
  if (!pass_) return;
  Await(plane_);
  if (const absl::Status status = Handle(); !status.ok()) Answer(status);
  // What the answer does not need, however long that is waited for.
  request_.Clear();
  order_.payload.clear();
  order_.kept_payload.reset();
  order_.memory.reset();
}

absl::Status PushCall::Handle() {
  PushRequest request;
  LOCKSTEP_ASSIGN_OR_RETURN(wire::ReceivedPayload received,
                            wire::DecodeWithPayload(request_, &request, [this](auto message) {
                              return CheckSender(message, *plane_.shard);
                            }));
  LOCKSTEP_ASSIGN_OR_RETURN(order_, FromProto(request));
  const auto payload = std::make_shared<const wire::ReceivedPayload>(std::move(received));
  order_.payload = payload->spans();
  order_.kept_payload = {payload, &payload->spans()};
  LOCKSTEP_ASSIGN_OR_RETURN(NextOrder next, Next(request));
  if (request.in_memory() && !request.ask()) LOCKSTEP_RETURN_IF_ERROR(Locate(request));
  PushPull(plane_.shard, order_, std::move(next),
           [call = shared_from_this()](absl::StatusOr<PushPullResult> result) {
             call->Answer(std::move(result));
           });
  return absl::OkStatus();
}

absl::Status PushCall::Locate(const PushRequest& request) {
  const absl::Status located = plane_.memory == nullptr
                                   ? absl::NotFoundError("this ps exchanges no memory")
                                   : plane_.memory->Locate(request, &order_);
  if (located.ok()) return located;
  // Who may not push is told so rather than that it has attached nothing.
  LOCKSTEP_RETURN_IF_ERROR(plane_.shard->Admit(order_.worker));
  return located;
}

absl::StatusOr<NextOrder> PushCall::Next(const PushRequest& request) const {
  LOCKSTEP_ASSIGN_OR_RETURN(NextOrder next, FromProto(request.next(), order_.worker));
  if (next.pull.has_value()) {
    next.pull->in_memory = request.next().pull().in_memory() && plane_.memory != nullptr &&
                           plane_.memory->HasValues(order_.worker);
  }
  return next;
}

void PushCall::Answer(absl::StatusOr<PushPullResult> result) {
  if (!result.ok()) {
    responder_.FinishWithError(rpc::ToGrpc(result.status()), answered_.Arm());
    return;
  }
  // Who pulls them is told why they do not come.
  if (result->values.has_value() && !CheckFits(*result->values).ok()) result->values.reset();
  const PushReply header = ToProto(*result, order_);
  responder_.Finish(result->values.has_value()
                        ? EncodeWithValues(header, *std::move(result->values))
                        : wire::Encode(header),
                    grpc::Status::OK, answered_.Arm());
}

}  // namespace lockstep::ps
