#include "ps/service/pull_call.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/wire/byte_buffer.h"
#include "ps/service/convert.h"
#include "ps/service/shared_memory_registry.h"
#include "ps/service/values_payload.h"
#include "ps/service/worker_check.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

void PullCall::Await(const DataPlane& plane) {
  const auto call = std::make_shared<PullCall>(plane);
  // Given back only if a call arrives.
  call->context_.AsyncNotifyWhenDone(call->ended_.tag());
  plane.methods->RequestPull(&call->context_, &call->request_, &call->responder_, plane.queue.queue,
                             plane.queue.queue, call->arrived_.Arm());
}

void PullCall::Arrived(bool ok) {
  if (!ok) return;  // the server stops
  ended_.Arm();
  pass_ = plane_.queue.gate->Enter();
  if (!pass_) return;
  Await(plane_);
  if (const absl::Status status = Handle(); !status.ok()) Answer(status);
}

absl::Status PullCall::Handle() {
  PullRequest request;
  LOCKSTEP_RETURN_IF_ERROR(wire::Decode(
      request_, &request, [this](auto message) { return CheckSender(message, *plane_.shard); }));
  request_.Clear();
  LOCKSTEP_ASSIGN_OR_RETURN(PullOrder order, FromProto(request));
  order.in_memory =
      request.in_memory() && plane_.memory != nullptr && plane_.memory->HasValues(order.worker);
  order.ticket = {shared_from_this(), &ticket_};
  plane_.shard->Pull(order, [call = weak_from_this()](absl::StatusOr<PullResult> result) {
    if (const auto alive = call.lock()) alive->Answer(std::move(result));
  });
  return absl::OkStatus();
}

void PullCall::Ended(bool) {
  if (pass_ && context_.IsCancelled()) plane_.shard->CancelPull(&ticket_);
}

void PullCall::Answer(absl::StatusOr<PullResult> result) {
  const absl::Status status = result.ok() ? CheckFits(*result) : result.status();
  if (!status.ok()) {
    responder_.FinishWithError(rpc::ToGrpc(status), answered_.Arm());
    return;
  }
  const PullReply header = ToProto(*result);
  responder_.Finish(EncodeWithValues(header, *std::move(result)), grpc::Status::OK,
                    answered_.Arm());
}

}  // namespace lockstep::ps
