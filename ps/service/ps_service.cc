#include "ps/service/ps_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/log/log.h"
#include "common/transport/grpc/grpc_tensor_call.h"
#include "ps/service/command_calls.h"
#include "ps/service/convert.h"
#include "ps/service/tensor_calls.h"
#include "ps/service/worker_check.h"

namespace lockstep::ps {
namespace {

constexpr size_t kShownSlots = 5;

// Pushes and pulls that gRPC can hand over before we ask for more.
constexpr int kAhead = 8;

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

absl::Status DiskIsBusy() {
  return absl::UnavailableError(absl::StrCat("the ps creates its variables or saves, and ",
                                             SerialThread::kMaxWaiting,
                                             " such calls wait already. Remedy: try again"));
}

// What a call is answered with that returns a result in the shard's own terms.
template <typename Reply, typename Result>
absl::StatusOr<Reply> Translated(const absl::StatusOr<Result>& result) {
  if (!result.ok()) return result.status();
  return ToProto(*result);
}

}  // namespace

PsService::PsService(Shard* shard, SharedMemoryRegistry* memory, CommandWatch* watch,
                     CallerContacts* contacts, PsIdentity identity, PsEvents events)
    : shard_(shard),
      memory_(memory),
      watch_(watch),
      contacts_(contacts),
      finisher_(shard, watch),
      references_(memory),
      identity_(std::move(identity)),
      events_(std::move(events)) {}

void PsService::Serve(const rpc::ServingQueue& queue) {
  ServeTensors(queue);
  ServeOne(queue, &PsService::GetView);
  ServeOne(queue, &PsService::SetView);
  ServeOne(queue, &PsService::CreateVariables);
  ServeOne(queue, &PsService::Grant);
  ServeOne(queue, &PsService::CommitStep);
  ServeOne(queue, &PsService::Save);
  ServeOne(queue, &PsService::ReleaseSnapshot);
  ServeOne(queue, &PsService::Finish);
  ServeOne(queue, &PsService::RenewLease);
  ServeOne(queue, &PsService::WatchCommand);
  ServeOne(queue, &PsService::DequeueToken);
  ServeOne(queue, &PsService::Ping);
  ServeOne(queue, &PsService::ServerPing);
  ServeOne(queue, &PsService::AttachMemory);
}

void PsService::ServeTensors(const rpc::ServingQueue& queue) {
  const auto check_with = [this](int pieces) {
    return [this, pieces](absl::string_view request) {
      return CheckUnparsed(request, pieces, *shard_);
    };
  };
  const auto has_checksums = [this] { return has_checksums_.load(); };
  const auto push = std::make_shared<const GrpcTensorMethod<PushRequest, PushReply>>(
      GrpcTensorMethod<PushRequest, PushReply>{
          .raw = methods_.Of<PushRequest>(),
          .check =
              [this](absl::string_view request) { return CheckUnparsedPush(request, *shard_); },
          .handle = std::bind_front(HandlePush, shard_),
          .references = &references_,
          .expects_checksums = has_checksums});
  const auto pull = std::make_shared<const GrpcTensorMethod<PullRequest, PullReply>>(
      GrpcTensorMethod<PullRequest, PullReply>{.raw = methods_.Of<PullRequest>(),
                                               .check = check_with(PullRequest::kPiecesFieldNumber),
                                               .handle = std::bind_front(HandlePull, shard_),
                                               .references = &references_,
                                               .expects_checksums = has_checksums,
                                               .watches_callers = true});
  const auto store =
      std::make_shared<const GrpcTensorMethod<StoreVersionRequest, StoreVersionReply>>(
          GrpcTensorMethod<StoreVersionRequest, StoreVersionReply>{
              .raw = methods_.Of<StoreVersionRequest>(),
              .check = check_with(StoreVersionRequest::kPiecesFieldNumber),
              .handle = std::bind_front(HandleStoreVersion, shard_),
              .references = &references_,
              .expects_checksums = has_checksums});
  const auto put_state = std::make_shared<const GrpcTensorMethod<PutStateRequest, PutStateReply>>(
      GrpcTensorMethod<PutStateRequest, PutStateReply>{
          .raw = methods_.Of<PutStateRequest>(),
          .check = check_with(PutStateRequest::kPiecesFieldNumber),
          .handle = std::bind_front(HandlePutState, shard_),
          .references = &references_,
          .expects_checksums = has_checksums});
  for (int i = 0; i < kAhead; ++i) {
    GrpcTensorCall<PutStateRequest, PutStateReply>::Await(put_state, queue);
    GrpcTensorCall<StoreVersionRequest, StoreVersionReply>::Await(store, queue);
    GrpcTensorCall<PushRequest, PushReply>::Await(push, queue);
    GrpcTensorCall<PullRequest, PullReply>::Await(pull, queue);
  }
}

template <typename Request, typename Reply>
void PsService::ServeOne(const rpc::ServingQueue& queue, Handler<Request, Reply> handler) {
  rpc::ServeUnary<Request, Reply>(&methods_, queue,
                                  [this, handler](const Request& request, Callback<Reply> respond) {
                                    (this->*handler)(request, std::move(respond));
                                  });
}

void PsService::GetView(const GetViewRequest& request, Callback<SetViewReply> respond) {
  Call(events_.asked_by_chief);
  if (const absl::Status status = finisher_.CheckServing(); !status.ok()) return respond(status);
  SetViewReply reply = ToViewReply(shard_->Report(), identity_.incarnation);
  if (reply.has_variables()) {
    absl::MutexLock lock(&mutex_);
    reply.set_job_text(job_text_);
    reply.set_model_text(model_text_);
  }
  if (request.opens_copy_port() && events_.open_copy_port) {
    const absl::StatusOr<uint32_t> port = events_.open_copy_port();
    if (!port.ok()) return respond(port.status());
    reply.set_copy_port(*port);
  }
  if (identity_.task_index == kStepShard) {
    *reply.mutable_command_status() = watch_->Status();
  }
  respond(std::move(reply));
}

void PsService::SetView(const SetViewRequest& request, Callback<SetViewReply> respond) {
  Call(events_.called_by_chief);
  if (const absl::Status status = finisher_.CheckServing(); !status.ok()) return respond(status);
  if (const absl::Status status = CheckAddressee(request); !status.ok()) {
    LogOnce(std::string(status.message()));
    return respond(status);
  }
  const absl::StatusOr<View> view = FromProto(request);
  if (!view.ok()) return respond(view.status());
  const absl::StatusOr<ShardState> state = shard_->SetView(*view);
  if (!state.ok()) return respond(state.status());
  NoteView(request, watch_);
  identity_.clusters->Add(request.cluster());
  SetViewReply reply = ToProto(*state, identity_.incarnation);
  if (memory_ != nullptr) memory_->KeepOnly(reply.members());
  respond(std::move(reply));
}

template <typename Request>
absl::Status PsService::CheckChief(const Request& request) const {
  if (!request.version().empty() && request.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", identity_.task_index, " is of version ", kVersion, ", the chief of version ",
        Printable(request.version(), limits::kMaxVersionBytes),
        ". Remedy: install the same version everywhere"));
  }
  const std::string difference =
      identity_.clusters->DifferenceFrom(TextsOf(request.cluster(), request.earlier_clusters()),
                                         request.elastic(), "this ps's", "the chief's");
  if (!difference.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", identity_.task_index, " has another cluster spec than the chief: ", difference,
        ". Remedy: give every task the same cluster spec; one that runs reads its file again on "
        "SIGHUP"));
  }
  return absl::OkStatus();
}

absl::Status PsService::CheckAddressee(const SetViewRequest& request) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckChief(request));
  if (request.shard() != identity_.task_index) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this is ps ", identity_.task_index, ", the chief calls it ps ", request.shard(),
        ". Remedy: start each ps at the address that the cluster spec gives its --task_index"));
  }
  return absl::OkStatus();
}

// Empty: of nothing.
absl::Status PsService::CheckPath(const std::string& path) const {
  if (path.empty()) return absl::OkStatus();
  return identity_.checkpoint_roots.Check(
      path, absl::StrCat("a checkpoint folder there, or another --checkpoint_roots of ps ",
                         identity_.task_index));
}

// The chief repeats itself.
void PsService::LogOnce(const std::string& refusal) {
  {
    absl::MutexLock lock(&mutex_);
    if (last_refusal_ == refusal) return;
    last_refusal_ = refusal;
  }
  log::Error(absl::StrCat("refused the chief: ", refusal));
}

void PsService::CreateVariables(const CreateVariablesRequest& request,
                                Callback<CreateVariablesReply> respond) {
  Call(events_.called_by_chief);
  absl::Status refused = shard_->Admit(request.command());
  refused.Update(CheckPath(request.restore_from()));
  if (!refused.ok()) return respond(refused);
  const auto arguments = std::make_shared<const CreateVariablesRequest>(request);
  DoOnDisk<CreatedVariables>(
      [this, arguments] { return shard_->CreateVariables(*arguments); },
      [this, arguments,
       respond = std::move(respond)](const absl::StatusOr<CreatedVariables>& created) mutable {
        if (!created.ok()) return respond(created.status());
        // Workers of this chief and of the one before it push.
        has_checksums_.store(created->has_checksums && arguments->transport().checksums());
        {
          absl::MutexLock lock(&mutex_);
          job_text_ = arguments->job_text();
          model_text_ = arguments->model_text();
        }
        Call(events_.created);
        WarnOfMissing(created->missing_slots, arguments->restore_from());
        respond(created->reply);
      });
}

// A call that finds no room is answered at once, by the same callback.
template <typename Result>
void PsService::DoOnDisk(std::function<absl::StatusOr<Result>()> work, Callback<Result> done) {
  Call(events_.work_begins);
  const auto told = std::make_shared<Callback<Result>>(std::move(done));
  const bool is_queued = disk_.TryDo([this, work = std::move(work), told] {
    absl::StatusOr<Result> result = work();
    Call(events_.work_ends);
    (*told)(std::move(result));
  });
  if (is_queued) return;
  Call(events_.work_ends);
  (*told)(DiskIsBusy());
}

void PsService::Grant(const GrantRequest& request, Callback<GrantReply> respond) {
  Call(events_.called_by_chief);
  shard_->Grant(FromProto(request),
                [respond = std::move(respond)](const absl::StatusOr<ClosedStep>& closed) mutable {
                  respond(Translated<GrantReply>(closed));
                });
}

void PsService::CommitStep(const CommitStepRequest& request, Callback<CommitStepReply> respond) {
  Call(events_.called_by_chief);
  const absl::StatusOr<GlobalStep> step =
      shard_->CommitStep(request.command(), GlobalStep(request.step()), request.last());
  if (!step.ok()) return respond(step.status());
  CommitStepReply reply;
  reply.set_global_step(step->value());
  respond(std::move(reply));
}

void PsService::Save(const SaveRequest& request, Callback<SaveReply> respond) {
  Call(events_.called_by_chief);
  absl::Status refused = shard_->Admit(request.command());
  refused.Update(CheckPath(request.folder()));
  if (!refused.ok()) return respond(refused);
  shard_->AwaitStored(
      request.command(), GlobalStep(request.version()),
      [this, request, respond = std::move(respond)](const absl::StatusOr<bool>& stored) mutable {
        if (!stored.ok()) return respond(stored.status());
        SaveStored(request, std::move(respond));
      });
}

void PsService::SaveStored(const SaveRequest& request, Callback<SaveReply> respond) {
  DoOnDisk<ShardFile>(
      [this, arguments = request] {
        return shard_->Save(arguments.command(), GlobalStep(arguments.version()),
                            arguments.folder());
      },
      [respond = std::move(respond)](const absl::StatusOr<ShardFile>& saved) mutable {
        respond(Translated<SaveReply>(saved));
      });
}

void PsService::ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                                Callback<ReleaseSnapshotReply> respond) {
  Call(events_.called_by_chief);
  const absl::Status status = shard_->ReleaseSnapshot(
      request.command(), GlobalStep(request.version()), EvaluationOf(request));
  if (!status.ok()) return respond(status);
  respond(ReleaseSnapshotReply());
}

void PsService::Finish(const FinishRequest& request, Callback<FinishReply> respond) {
  Call(events_.called_by_chief);
  const absl::StatusOr<JobEnd> end = finisher_.Finish(request);
  if (!end.ok()) return respond(end.status());
  contacts_->Stop();  // from now on others end, too
  respond(FinishReply());
  if (events_.finished) events_.finished(*end);
}

void PsService::RenewLease(const RenewLeaseRequest& request, Callback<RenewLeaseReply> respond) {
  Call(events_.called_by_chief);
  // One that leaves takes it: a short lease could end before the chief renews it elsewhere.
  if (const absl::Status status = finisher_.CheckUnfinished(); !status.ok()) return respond(status);
  respond(HandleRenewLease(*shard_, request, watch_));
}

void PsService::WatchCommand(const WatchCommandRequest& request,
                             Callback<WatchCommandReply> respond) {
  if (identity_.task_index != kStepShard) {
    return respond(absl::FailedPreconditionError(
        absl::StrCat("this is ps ", identity_.task_index, ", the chief's lease is at ps 0")));
  }
  if (const absl::Status status = CheckChief(request); !status.ok()) {
    LogOnce(std::string(status.message()));
    return respond(status);
  }
  watch_->Watch(request, std::move(respond));
}

void PsService::DequeueToken(const DequeueTokenRequest& request,
                             Callback<DequeueTokenReply> respond) {
  shard_->DequeueToken(FromProto(request),
                       [respond = std::move(respond)](const absl::StatusOr<Token>& token) mutable {
                         respond(Translated<DequeueTokenReply>(token));
                       });
}

void PsService::Ping(const PingRequest& request, Callback<PingReply> respond) {
  const WorkerIdentity worker = FromProto(request.worker());
  if (shard_->Admit(worker).ok()) {
    contacts_->OnPing(worker, absl::Milliseconds(request.lease_ms()));
  }
  respond(PingReply());
}

void PsService::ServerPing(const ServerPingRequest& request, Callback<PingReply> respond) {
  const absl::Duration lease = absl::Milliseconds(request.lease_ms());
  switch (request.server_case()) {
    case ServerPingRequest::kChief:
      contacts_->OnPing({CallerContacts::Server::kChief, request.chief()}, lease);
      break;
    case ServerPingRequest::kPs:
      contacts_->OnPing({CallerContacts::Server::kPs, request.ps()}, lease);
      break;
    case ServerPingRequest::SERVER_NOT_SET:
      return respond(absl::InvalidArgumentError("a ping names neither `chief` nor `ps`"));
  }
  respond(PingReply());
}

void PsService::AttachMemory(const AttachMemoryRequest& request,
                             Callback<AttachMemoryReply> respond) {
  const absl::Status refused = shard_->Admit(FromProto(request.worker()));
  if (!refused.ok()) return respond(refused);
  AttachMemoryReply reply;
  if (memory_ != nullptr) {
    reply = memory_->Offer(request.worker(), request.host());
  } else {
    reply.set_reason("this ps exchanges no memory");
  }
  respond(std::move(reply));
}

}  // namespace lockstep::ps
