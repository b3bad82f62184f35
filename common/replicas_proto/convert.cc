#include "common/replicas_proto/convert.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep {

StepReplicas ToProto(const ReplicaView& view) {
  StepReplicas message;
  message.set_number(view.number);
  message.set_first(view.first.value());
  message.set_aggregate(view.aggregate);
  for (const WorkerIndex worker : view.workers) message.add_workers(worker.value());
  return message;
}

StepShare ToProto(const ReplicaShare& share) {
  StepShare message;
  message.set_view(share.view);
  message.set_total(share.total);
  message.set_position(share.position);
  return message;
}

ReplicaShare FromProto(const StepShare& share) {
  return {.view = share.view(), .total = share.total(), .position = share.position()};
}

google::protobuf::RepeatedPtrField<StepReplicas> ToProto(const ReplicaViews& views) {
  google::protobuf::RepeatedPtrField<StepReplicas> messages;
  for (const ReplicaView& view : views.views()) *messages.Add() = ToProto(view);
  return messages;
}

absl::StatusOr<ReplicaViews> FromProto(
    const google::protobuf::RepeatedPtrField<StepReplicas>& views) {
  ReplicaViews result;
  for (const StepReplicas& message : views) {
    ReplicaView view{.number = message.number(),
                     .first = GlobalStep(message.first()),
                     .aggregate = message.aggregate()};
    for (const uint32_t worker : message.workers()) view.workers.emplace_back(worker);
    LOCKSTEP_RETURN_IF_ERROR(result.Add(std::move(view)));
  }
  return result;
}

}  // namespace lockstep
