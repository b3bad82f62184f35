// Replica views and shares, from and to their messages.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include "absl/status/statusor.h"
#include "common/replicas/replica_view.h"
#include "proto/replicas.pb.h"

namespace lockstep {

StepReplicas ToProto(const ReplicaView& view);
StepShare ToProto(const ReplicaShare& share);
ReplicaShare FromProto(const StepShare& share);

google::protobuf::RepeatedPtrField<StepReplicas> ToProto(const ReplicaViews& views);
// Errors of ReplicaViews::Add.
absl::StatusOr<ReplicaViews> FromProto(
    const google::protobuf::RepeatedPtrField<StepReplicas>& views);

}  // namespace lockstep
