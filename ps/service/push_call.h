// One Push: decoded, handed to the shard and answered on the polling thread; with a token and
// values when these are there, on whichever thread made them. Until then the shard keeps the call,
// also when its caller has gone away: a worker has one such push at a time, and asking gRPC for the
// end of each call costs a small step 4 %.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/queue_event.h"
#include "proto/ps.pb.h"
#include "ps/service/data_plane.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

class PushCall : public std::enable_shared_from_this<PushCall> {
 public:
  explicit PushCall(const DataPlane& plane) : plane_(plane), responder_(&context_) {}
  static void Await(const DataPlane& plane);

 private:
  void Arrived(bool ok);
  absl::Status Handle();
  absl::Status Locate(const PushRequest& request);
  absl::StatusOr<NextOrder> Next(const PushRequest& request) const;
  void Answer(absl::StatusOr<PushPullResult> result);
  void Answered(bool) {}

  const DataPlane plane_;
  Gate::Pass pass_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  PushOrder order_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_;
  rpc::CallEvent<PushCall> arrived_{this, &PushCall::Arrived};
  rpc::CallEvent<PushCall> answered_{this, &PushCall::Answered};
};

}  // namespace lockstep::ps
