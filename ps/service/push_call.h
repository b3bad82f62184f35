// One Push: decoded, handed to the shard and answered on the polling thread; with a token and
// values when these are there, on whichever thread made them. When the caller goes away first, the
// parked call is withdrawn.
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
  void Ended(bool);

  const DataPlane plane_;
  Gate::Pass pass_;
  CallTicket ticket_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  PushOrder order_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> responder_;
  rpc::CallEvent<PushCall> arrived_{this, &PushCall::Arrived};
  rpc::CallEvent<PushCall> answered_{this, &PushCall::Answered};
  // Comes when the call is over for gRPC, answered or cancelled: until then it is kept.
  rpc::CallEvent<PushCall> ended_{this, &PushCall::Ended};
};

}  // namespace lockstep::ps
