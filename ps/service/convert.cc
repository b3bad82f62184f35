#include "ps/service/convert.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/replicas_proto/convert.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::ps {
namespace {

absl::Status InPiece(const lockstep::PushPiece& piece, const absl::Status& status) {
  return Annotate(status, absl::StrCat("push of variable ", piece.variable()));
}

absl::StatusOr<PushPiece> ToPushPiece(const lockstep::PushPiece& piece) {
  const absl::StatusOr<DType> dtype = lockstep::FromProto(piece.dtype());
  if (!dtype.ok()) return InPiece(piece, dtype.status());
  absl::StatusOr<Shape> shape =
      Shape::Create({piece.dims().data(), static_cast<size_t>(piece.dims_size())});
  if (!shape.ok()) return InPiece(piece, shape.status());
  return PushPiece{.variable = VariableId(piece.variable()),
                   .dtype = *dtype,
                   .shape = *std::move(shape),
                   .offset = piece.offset(),
                   .size = piece.size(),
                   .rows = piece.rows()};
}

std::vector<StoredPiece> ToStoredPieces(
    const google::protobuf::RepeatedPtrField<lockstep::StoredPiece>& pieces) {
  std::vector<StoredPiece> converted;
  for (const lockstep::StoredPiece& piece : pieces) {
    converted.push_back({VariableId(piece.variable()), piece.slot(), piece.offset(), piece.size()});
  }
  return converted;
}

lockstep::Verdict ToWireVerdict(PushStatus status) {
  switch (status) {
    case PushStatus::kPending:
      return PENDING;
    case PushStatus::kAccepted:
      return ACCEPTED;
    case PushStatus::kStale:
      return STALE;
  }
  return PENDING;
}

void Fill(const PendingVariable& pending, VariableStatus* to) {
  to->set_name(pending.name);
  to->set_have(pending.have);
  to->set_required(pending.required);
  for (WorkerIndex worker : pending.from) to->add_from(worker.value());
}

MeanArguments ToMeanArguments(const PushRequest& request) {
  MeanArguments arguments{.learning_rate = request.mean_learning_rate(), .stale = request.stale()};
  for (const lockstep::CountedPush& push : request.mean_of()) {
    arguments.mean_of.push_back(
        {WorkerIndex(push.worker()), Incarnation(push.incarnation()), PushSeq(push.push_seq())});
  }
  return arguments;
}

}  // namespace

WorkerIdentity FromProto(const lockstep::WorkerIdentity& worker) {
  return {.job = worker.job(),
          .epoch = Epoch(worker.epoch()),
          .worker = WorkerIndex(worker.worker()),
          .incarnation = Incarnation(worker.incarnation()),
          .tower = worker.tower()};
}

absl::StatusOr<View> FromProto(const SetViewRequest& request) {
  View view{.command = request.command(),
            .epoch = Epoch(request.epoch()),
            .shard = ShardIndex(request.shard()),
            .number = request.number(),
            .is_copy = request.role() == COPY,
            .copy_address = request.copy_address(),
            .makes_copy = request.makes_copy(),
            .committed = GlobalStep(request.global_step()),
            .lease = absl::Milliseconds(request.lease_ms())};
  LOCKSTEP_ASSIGN_OR_RETURN(view.replica_views, lockstep::FromProto(request.replica_views()));
  for (const lockstep::Member& member : request.members()) {
    view.members.push_back(
        {.worker = WorkerIndex(member.worker()), .incarnation = Incarnation(member.incarnation())});
  }
  return view;
}

GrantArguments FromProto(const GrantRequest& request) {
  return {.command = request.command(),
          .step = GlobalStep(request.step()),
          .required = request.required(),
          .learning_rate = request.learning_rate(),
          .keep_values = request.keep_values(),
          .keep_slots = request.keep_slots(),
          .commit = request.commit(),
          .last = request.last()};
}

std::optional<EvaluatedVersion> EvaluationOf(const ReleaseSnapshotRequest& request) {
  if (!request.has_evaluation()) return std::nullopt;
  return EvaluatedVersion{.version = GlobalStep(request.version()),
                          .examples = request.evaluation().examples(),
                          .accuracy = request.evaluation().accuracy(),
                          .loss = request.evaluation().loss()};
}

DequeueArguments FromProto(const DequeueTokenRequest& request) {
  DequeueArguments arguments{.worker = FromProto(request.worker()),
                             .dequeue_seq = DequeueSeq(request.dequeue_seq())};
  if (request.has_token_step()) arguments.token_step = GlobalStep(request.token_step());
  return arguments;
}

absl::StatusOr<PullArguments> FromProto(const PullRequest& request) {
  PullArguments arguments{.worker = FromProto(request.worker()),
                          .version = GlobalStep(request.version()),
                          .averages = request.averages(),
                          .slot = request.slot()};
  if (request.wire_type() != DATA_TYPE_UNSPECIFIED) {
    const absl::StatusOr<DType> type = lockstep::FromProto(request.wire_type());
    if (!type.ok()) return Annotate(type.status(), "the pull's wire_type");
    arguments.wire_type = *type;
  }
  arguments.pieces.reserve(request.pieces_size());
  for (const lockstep::PullPiece& piece : request.pieces()) {
    arguments.pieces.push_back({.variable = VariableId(piece.variable()),
                                .offset = piece.offset(),
                                .size = piece.size(),
                                .rows = {piece.rows().begin(), piece.rows().end()}});
  }
  return arguments;
}

StoreArguments FromProto(const StoreVersionRequest& request) {
  return {.worker = FromProto(request.worker()),
          .version = GlobalStep(request.version()),
          .pieces = ToStoredPieces(request.pieces())};
}

StateArguments FromProto(const PutStateRequest& request) {
  return {.worker = FromProto(request.worker()),
          .step = GlobalStep(request.step()),
          .begins = request.begins(),
          .scalars = {request.scalars().begin(), request.scalars().end()},
          .accepted = request.accepted(),
          .stale = request.stale(),
          .pieces = ToStoredPieces(request.pieces()),
          .completes = request.completes()};
}

absl::StatusOr<PushArguments> FromProto(const PushRequest& request) {
  PushArguments arguments{.worker = FromProto(request.worker()),
                          .push_seq = PushSeq(request.push_seq()),
                          .local_step = GlobalStep(request.local_step()),
                          .ask = request.ask()};
  if (request.has_mean_learning_rate()) arguments.mean = ToMeanArguments(request);
  arguments.pieces.reserve(request.pieces_size());
  for (const lockstep::PushPiece& piece : request.pieces()) {
    LOCKSTEP_ASSIGN_OR_RETURN(PushPiece converted, ToPushPiece(piece));
    arguments.pieces.push_back(std::move(converted));
  }
  return arguments;
}

NextStepArguments FromProto(const NextRequest& request, const WorkerIdentity& worker) {
  NextStepArguments next{.dequeue_seq = DequeueSeq(request.dequeue_seq())};
  if (!request.has_pull()) return next;
  absl::StatusOr<PullArguments> pull = FromProto(request.pull());
  if (!pull.ok()) return next;
  next.pull = *std::move(pull);
  next.pull->worker = worker;
  return next;
}

SetViewReply ToProto(const ShardState& state, Incarnation incarnation) {
  SetViewReply reply;
  reply.set_incarnation(incarnation.value());
  reply.set_shard_step(state.shard_step.value());
  reply.set_start_step(state.start_step.value());
  reply.set_global_step(state.global_step.value());
  reply.set_has_variables(state.has_variables);
  reply.set_epoch(state.epoch.value());
  reply.set_term(state.term.value());
  reply.set_job(state.job);
  reply.set_version(kVersion);
  for (const Member& member : state.members) {
    lockstep::Member* to = reply.add_members();
    to->set_worker(member.worker.value());
    to->set_incarnation(member.incarnation.value());
  }
  *reply.mutable_replica_views() = lockstep::ToProto(state.replica_views);
  reply.set_role(state.is_copy ? COPY : PRIMARY);
  reply.set_awaits_state(state.awaits_state);
  reply.set_has_copy(state.has_copy);
  reply.set_copy_silent_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(state.copy_silence)));
  reply.set_is_deposed(state.is_deposed);
  for (const GlobalStep version : state.kept_versions) {
    reply.add_kept_versions(version.value());
  }
  for (const EvaluatedVersion& evaluation : state.evaluations) {
    lockstep::EvaluatedVersion* to = reply.add_evaluations();
    to->set_version(evaluation.version.value());
    to->set_examples(evaluation.examples);
    to->set_accuracy(evaluation.accuracy);
    to->set_loss(evaluation.loss);
  }
  return reply;
}

SetViewReply ToViewReply(const ShardReport& report, Incarnation incarnation) {
  SetViewReply reply = ToProto(report.state, incarnation);
  if (!report.state.has_variables) return reply;
  ShardProgress* progress = reply.mutable_progress();
  progress->set_open_variables(report.open_variables);
  for (const PendingVariable& pending : report.pending) Fill(pending, progress->add_pending());
  progress->set_waiting_dequeues(report.waiting_dequeues);
  return reply;
}

GrantReply ToProto(const ClosedStep& closed) {
  GrantReply reply;
  reply.set_step(closed.step.value());
  reply.set_shard_step(closed.shard_step.value());
  reply.set_accepted(closed.accepted);
  reply.set_stale(closed.stale);
  for (const SmallStatistic& statistic : closed.statistics) {
    lockstep::SmallStatistic* to = reply.add_statistics();
    to->set_variable(statistic.variable.value());
    to->mutable_values()->Add(statistic.values.begin(), statistic.values.end());
    to->set_count(statistic.count);
  }
  return reply;
}

SaveReply ToProto(const ShardFile& saved) {
  SaveReply reply;
  reply.set_file(saved.file);
  reply.set_bytes(saved.bytes);
  reply.set_has_non_finite(!saved.is_finite);
  for (const TensorRecord& tensor : saved.tensors) {
    SaveReply::TensorRecord* to = reply.add_tensors();
    to->set_name(tensor.name);
    to->set_dtype(lockstep::ToProto(tensor.dtype));
    to->mutable_dims()->Add(tensor.shape.dims().begin(), tensor.shape.dims().end());
    to->set_crc32c(tensor.crc32c);
  }
  return reply;
}

DequeueTokenReply ToProto(const Token& token) {
  DequeueTokenReply reply;
  reply.set_step(token.step.value());
  reply.set_done(token.done);
  reply.set_store_values(token.store_values);
  reply.set_store_slots(token.store_slots);
  if (token.share.has_value()) *reply.mutable_share() = lockstep::ToProto(*token.share);
  return reply;
}

void BeginReply(const PushRequest& request, PushReply* reply) {
  reply->mutable_outcomes()->Reserve(request.pieces_size());
  for (const lockstep::PushPiece& piece : request.pieces()) {
    reply->add_outcomes()->set_variable(piece.variable());
  }
}

void ToProto(const PushPullResult& result, PushReply* reply) {
  reply->set_shard_step(result.push.shard_step.value());
  reply->set_done(result.push.done);
  for (size_t i = 0; i < result.push.statuses.size(); ++i) {
    PushReply::Outcome* const outcome = reply->mutable_outcomes(static_cast<int>(i));
    outcome->set_verdict(ToWireVerdict(result.push.statuses[i]));
  }
  if (result.token.has_value()) *reply->mutable_next()->mutable_token() = ToProto(*result.token);
  if (result.values.has_value()) {
    ToProto(*result.values, reply->mutable_next()->mutable_values());
  }
}

void ToProto(const PullResult& result, PullReply* reply) {
  reply->set_version(result.version.value());
  reply->mutable_scalars()->Add(result.scalars.begin(), result.scalars.end());
  for (const PulledPiece& piece : result.pieces) {
    lockstep::PullPiece* to = reply->add_pieces();
    to->set_variable(piece.variable.value());
    to->set_offset(piece.offset);
    to->set_size(piece.size);
  }
}

ShardStatus ToProto(const ShardReport& report) {
  ShardStatus status;
  status.set_variables(report.variables);
  status.set_bytes(report.bytes);
  status.set_shard_step(report.state.shard_step.value());
  status.set_accepted(report.accepted);
  status.set_stale(report.stale);
  status.set_duplicates(report.duplicates);
  status.set_rejected(report.rejected);
  status.set_held_bytes(report.held_bytes);
  status.set_waiting_pulls(report.waiting_pulls);
  status.set_waiting_dequeues(report.waiting_dequeues);
  for (const PendingVariable& pending : report.pending) Fill(pending, status.add_pending());
  status.mutable_staleness()->Add(report.staleness.begin(), report.staleness.end());
  return status;
}

}  // namespace lockstep::ps
