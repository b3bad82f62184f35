// Between the messages of proto/ps.proto and the shard's plain structs.
#pragma once

#include "absl/status/statusor.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

View FromProto(const SetViewRequest& request);
VariablePlan FromProto(const CreateVariablesRequest& request);
CreateVariablesReply ToProto(const CreatedVariables& created);
GrantOrder FromProto(const GrantRequest& request);
Command FromProto(const lockstep::Command& command);
WorkerIdentity FromProto(const lockstep::WorkerIdentity& worker);
// The evaluation of the version that is released; its own version field is not read.
std::optional<EvaluatedVersion> EvaluationOf(const ReleaseSnapshotRequest& request);
DequeueOrder FromProto(const DequeueTokenRequest& request);
// Does not set `in_memory`: PullCall does, because it knows what the worker has mapped.
// INVALID_ARGUMENT: an unknown element type.
absl::StatusOr<PullOrder> FromProto(const PullRequest& request);
// Without the payload. INVALID_ARGUMENT naming the variable: unknown element type, bad shape.
absl::StatusOr<PushOrder> FromProto(const PushRequest& request);
// As of the requests that it stands for.
absl::StatusOr<NextOrder> FromProto(const NextRequest& request, const WorkerIdentity& worker);

SetViewReply ToProto(const ShardState& state, Incarnation incarnation);
// The answer to GetView, without the texts of job and model.
SetViewReply ToViewReply(const ShardReport& report, Incarnation incarnation);
GrantReply ToProto(const ClosedStep& closed);
SaveReply ToProto(const SavedShard& saved);
DequeueTokenReply ToProto(const Token& token);
// The outcome of each piece of `request`.
PushReply ToProto(const PushResult& result, const PushOrder& order);
// Without the payload of the values.
PushReply ToProto(const PushPullResult& result, const PushOrder& order);
// Without the payload.
PullReply ToProto(const PullResult& result);
ShardStatus ToProto(const ShardReport& report);

}  // namespace lockstep::ps
