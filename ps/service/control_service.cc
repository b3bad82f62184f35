#include "ps/service/control_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/config/cluster_spec.h"
#include "common/log/log.h"
#include "common/rpc/grpc_status.h"
#include "ps/service/convert.h"
#include "ps/service/parked_reply.h"

namespace lockstep::ps {
namespace {

constexpr size_t kShownSlots = 5;

// A variable may have been frozen until now, or an average not kept: or it is another's checkpoint.
void WarnOfMissing(const std::vector<std::string>& slots, const std::string& checkpoint) {
  if (slots.empty()) return;
  const auto shown = slots.begin() + static_cast<int64_t>(std::min(slots.size(), kShownSlots));
  const std::string more =
      shown == slots.end() ? "" : absl::StrCat(" and ", slots.end() - shown, " more");
  log::Warning(absl::StrCat(checkpoint, " has no ", absl::StrJoin(slots.begin(), shown, ", "), more,
                            ": slots without a saved value begin anew"));
}

void Call(const std::function<void()>& event) {
  if (event) event();
}

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

}  // namespace

ControlService::ControlService(Shard* shard, MemoryDesk* memory, PsIdentity identity,
                               PsEvents events)
    : shard_(shard), memory_(memory), identity_(std::move(identity)), events_(std::move(events)) {}

grpc::ServerUnaryReactor* ControlService::GetView(grpc::CallbackServerContext* context,
                                                  const GetViewRequest*, SetViewReply* reply) {
  *reply = ToProto(shard_->GetView(), identity_.incarnation);
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ControlService::SetView(grpc::CallbackServerContext* context,
                                                  const SetViewRequest* request,
                                                  SetViewReply* reply) {
  Call(events_.called_by_chief);
  if (const absl::Status status = CheckAddressee(*request); !status.ok()) {
    LogOnce(std::string(status.message()));
    return Answer(context, status);
  }
  const absl::StatusOr<ShardState> state = shard_->SetView(FromProto(*request));
  if (state.ok()) {
    *reply = ToProto(*state, identity_.incarnation);
    if (memory_ != nullptr) memory_->KeepOnly(state->members);
  }
  return Answer(context, state.status());
}

absl::Status ControlService::CheckAddressee(const SetViewRequest& request) {
  const std::string difference =
      DescribeDifference(identity_.cluster, request.cluster(), "this ps's", "the chief's");
  if (!difference.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", identity_.task_index, " has another cluster spec than the chief: ", difference,
        ". Remedy: start every task with the same cluster spec"));
  }
  if (request.shard() != identity_.task_index) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this is ps ", identity_.task_index, ", the chief calls it ps ", request.shard(),
        ". Remedy: start each ps at the address that the cluster spec gives its --task_index"));
  }
  return absl::OkStatus();
}

// The chief repeats itself.
void ControlService::LogOnce(const std::string& refusal) {
  {
    absl::MutexLock lock(&mutex_);
    if (last_refusal_ == refusal) return;
    last_refusal_ = refusal;
  }
  log::Error(absl::StrCat("refused the chief: ", refusal));
}

grpc::ServerUnaryReactor* ControlService::CreateVariables(grpc::CallbackServerContext*,
                                                          const CreateVariablesRequest* request,
                                                          CreateVariablesReply* reply) {
  Call(events_.called_by_chief);
  auto* parked = new ParkedReply;
  disk_.Do([this, handle = parked->handle(), plan = FromProto(*request), reply] {
    const absl::StatusOr<CreatedVariables> created = shard_->CreateVariables(plan);
    if (created.ok()) {
      Call(events_.created);
      WarnOfMissing(created->missing_slots, plan.restore_from);
    }
    handle->Answer(created.status(), [&] { *reply = ToProto(*created); });
  });
  return parked;
}

grpc::ServerUnaryReactor* ControlService::Grant(grpc::CallbackServerContext*,
                                                const GrantRequest* request, GrantReply* reply) {
  Call(events_.called_by_chief);
  auto* parked = new ParkedReply;
  shard_->Grant(FromProto(*request),
                [handle = parked->handle(), reply](const absl::StatusOr<ClosedStep>& closed) {
                  handle->Answer(closed.status(), [&] { *reply = ToProto(*closed); });
                });
  return parked;
}

grpc::ServerUnaryReactor* ControlService::CommitStep(grpc::CallbackServerContext* context,
                                                     const CommitStepRequest* request,
                                                     CommitStepReply* reply) {
  Call(events_.called_by_chief);
  const absl::StatusOr<GlobalStep> step = shard_->CommitStep(
      FromProto(request->command()), GlobalStep(request->step()), request->last());
  if (step.ok()) reply->set_global_step(step->value());
  return Answer(context, step.status());
}

grpc::ServerUnaryReactor* ControlService::Save(grpc::CallbackServerContext*,
                                               const SaveRequest* request, SaveReply* reply) {
  Call(events_.called_by_chief);
  auto* parked = new ParkedReply;
  disk_.Do([this, handle = parked->handle(), order = *request, reply] {
    const absl::StatusOr<SavedShard> saved =
        shard_->Save(FromProto(order.command()), GlobalStep(order.version()), order.folder());
    handle->Answer(saved.status(), [&] { *reply = ToProto(*saved); });
  });
  return parked;
}

grpc::ServerUnaryReactor* ControlService::ReleaseSnapshot(grpc::CallbackServerContext* context,
                                                          const ReleaseSnapshotRequest* request,
                                                          ReleaseSnapshotReply*) {
  Call(events_.called_by_chief);
  return Answer(context, shard_->ReleaseSnapshot(FromProto(request->command()),
                                                 GlobalStep(request->version())));
}

grpc::ServerUnaryReactor* ControlService::Finish(grpc::CallbackServerContext* context,
                                                 const FinishRequest* request, FinishReply*) {
  Call(events_.called_by_chief);
  const absl::Status status = shard_->Finish(FromProto(request->command()));
  grpc::ServerUnaryReactor* reactor = Answer(context, status);
  if (status.ok()) Call(events_.finished);
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::DequeueToken(grpc::CallbackServerContext*,
                                                       const DequeueTokenRequest* request,
                                                       DequeueTokenReply* reply) {
  auto* parked = new ParkedReply;
  shard_->DequeueToken(FromProto(*request),
                       [handle = parked->handle(), reply](const absl::StatusOr<Token>& token) {
                         handle->Answer(token.status(), [&] { *reply = ToProto(*token); });
                       });
  return parked;
}

grpc::ServerUnaryReactor* ControlService::AttachMemory(grpc::CallbackServerContext* context,
                                                       const AttachMemoryRequest* request,
                                                       AttachMemoryReply* reply) {
  const WorkerIdentity worker = FromProto(request->worker());
  const absl::Status admitted = shard_->Admit(worker);
  if (admitted.ok() && memory_ != nullptr) {
    *reply = memory_->Offer(worker, request->host());
  } else {
    reply->set_reason("this ps exchanges no memory");
  }
  return Answer(context, admitted);
}

}  // namespace lockstep::ps
