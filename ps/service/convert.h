// Between the messages of proto/ps.proto and the shard's plain structs.
#pragma once

#include "absl/status/statusor.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"
#include "ps/shard/calls.h"

namespace lockstep::ps {

// INVALID_ARGUMENT naming a replica view that cannot be.
absl::StatusOr<View> FromProto(const SetViewRequest& request);
GrantArguments FromProto(const GrantRequest& request);
WorkerIdentity FromProto(const lockstep::WorkerIdentity& worker);
// The evaluation of the version that is released; its own version field is not read.
std::optional<EvaluatedVersion> EvaluationOf(const ReleaseSnapshotRequest& request);
DequeueArguments FromProto(const DequeueTokenRequest& request);
// Does not set `accepts_references`: the transport knows. INVALID_ARGUMENT: an unknown element
// type.
absl::StatusOr<PullArguments> FromProto(const PullRequest& request);
// Without the tensors.
StoreArguments FromProto(const StoreVersionRequest& request);
StateArguments FromProto(const PutStateRequest& request);
// Without the tensors. INVALID_ARGUMENT naming the variable: unknown element type, bad shape.
absl::StatusOr<PushArguments> FromProto(const PushRequest& request);
// Without a pull that is malformed: the gradient that it comes with counts all the same.
NextStepArguments FromProto(const NextRequest& request, const WorkerIdentity& worker);

SetViewReply ToProto(const ShardState& state, Incarnation incarnation);
// The answer to GetView, without the texts of job and model.
SetViewReply ToViewReply(const ShardReport& report, Incarnation incarnation);
GrantReply ToProto(const ClosedStep& closed);
SaveReply ToProto(const ShardFile& saved);
DequeueTokenReply ToProto(const Token& token);
// The outcomes of the request's pieces, without verdicts.
void BeginReply(const PushRequest& request, PushReply* reply);
// Without the tensors. `reply` has begun with the outcomes of the request's pieces.
void ToProto(const PushPullResult& result, PushReply* reply);
// Without the tensors.
void ToProto(const PullResult& result, PullReply* reply);
ShardStatus ToProto(const ShardReport& report);

}  // namespace lockstep::ps
