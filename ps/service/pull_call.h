// One Pull: handed to the shard on the polling thread, answered when the version exists, on
// whichever thread made it. When the caller goes away first, the parked pull is withdrawn.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/queue_event.h"
#include "ps/service/data_plane.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

class PullCall : public std::enable_shared_from_this<PullCall> {
 public:
  explicit PullCall(const DataPlane& plane) : plane_(plane), responder_(&context_) {}
  static void Await(const DataPlane& plane);

 private:
  void Arrived(bool ok);
  absl::Status Handle();
  void Answer(absl::StatusOr<PullResult> result);
  void Answered(bool) {}
  void Ended(bool);

  const DataPlane plane_;
  Gate::Pass pass_;
  PullTicket ticket_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_;
  rpc::CallEvent<PullCall> arrived_{this, &PullCall::Arrived};
  rpc::CallEvent<PullCall> answered_{this, &PullCall::Answered};
  // Comes when the call is over for gRPC, answered or cancelled: until then it is kept.
  rpc::CallEvent<PullCall> ended_{this, &PullCall::Ended};
};

}  // namespace lockstep::ps
