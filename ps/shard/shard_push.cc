#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/packed_rows.h"
#include "ps/shard/content_check.h"
#include "ps/shard/shard_impl.h"

namespace lockstep::ps {

absl::StatusOr<PushResult> Shard::Impl::Push(const PushOrder& order) {
  PushContext push;
  absl::Status begun = CheckPush(order, &push);
  {
    absl::MutexLock lock(&mutex_);
    if (begun.ok()) begun = BeginPush(order, &push);
    if (!begun.ok() || !push.refused.ok()) ++rejected_;
    if (!begun.ok()) return begun;
    if (push.copies.empty()) {
      if (!push.refused.ok()) return push.refused;
      return std::move(push.result);
    }
    ++in_flight_;
  }
  CopyPayload(order, &push);
  std::vector<TakenVariable> all_taken;
  {
    absl::MutexLock lock(&mutex_);
    EndPush(&push, &all_taken);
    if (all_taken.empty() && push.early.empty()) EndFlight(&push.deferred);
  }
  push.deferred.Run();
  if (!push.early.empty()) ApplyReadyChunks(&push, &all_taken);
  if (!all_taken.empty()) push.result.done = ApplyAndPublish(push.state, std::move(all_taken));
  if (!push.refused.ok()) return push.refused;
  return std::move(push.result);
}

absl::Status Shard::Impl::CheckPush(const PushOrder& order, PushContext* push) {
  bool refuse_non_finite = false;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitWorker(order.worker));
    push->catalog = state_->shared_catalog;
    refuse_non_finite = state_->config.refuses_non_finite();
  }
  push->key = {order.worker.worker, order.worker.incarnation, order.push_seq};
  if (order.push_seq == PushSeq()) {
    return absl::InvalidArgumentError("push_seq counts from 1, got 0");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(push->variables, push->catalog->ResolvePush(order));
  if (order.ask) return absl::OkStatus();
  return CheckContents(*push->catalog, push->variables, order, refuse_non_finite);
}

absl::Status Shard::Impl::BeginPush(const PushOrder& order, PushContext* push) {
  // Again: the view may have changed since. In the same epoch the catalog is the same.
  LOCKSTEP_RETURN_IF_ERROR(AdmitWorker(order.worker));
  EpochState& state = *state_;
  push->state = &state;
  if (state.config.applies_early_chunks() &&
      order.worker.worker.value() >= state.config.replicas_to_aggregate()) {
    return absl::InvalidArgumentError(
        absl::StrCat("push of worker ", order.worker.worker.value(),
                     ": each step takes one gradient of every replica, and these are workers 0 to ",
                     state.config.replicas_to_aggregate() - 1));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckSameGradient(state, order, *push));
  LOCKSTEP_ASSIGN_OR_RETURN(const PushLedger::Age age,
                            state.ledger.Open(push->key, order.local_step));
  if (age == PushLedger::Age::kNew) {
    Abandon(&state, state.reassembly.RemoveOf(push->key.worker), &push->deferred);
  }
  push->result.statuses.reserve(order.pieces.size());
  push->copies.reserve(order.pieces.size());
  uint64_t position = 0;  // of the piece in the payload
  for (size_t piece = 0; piece < order.pieces.size(); ++piece) {
    const PushStatus status = Judge(order, push->variables[piece], push);
    push->result.statuses.push_back(status);
    if (status == PushStatus::kPending && !order.ask) ClaimChunk(order, piece, position, push);
    position += order.pieces[piece].size;
  }
  push->result.shard_step = state.step.shard_step();
  push->result.done = HasStopped(state);
  return absl::OkStatus();
}

// Chunks of one gradient say the same type and number of slices.
absl::Status Shard::Impl::CheckSameGradient(const EpochState& state, const PushOrder& order,
                                            const PushContext& push) {
  for (size_t i = 0; i < order.pieces.size() && !order.ask; ++i) {
    const CatalogEntry& entry = state.catalog[push.variables[i]];
    const PushPiece& piece = order.pieces[i];
    const auto gradient = state.reassembly.Find(push.key, push.variables[i]);
    if (gradient == nullptr) continue;
    const auto differs = [&](const auto& now, const auto& before) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(entry), ": a chunk of push ", order.push_seq.value(), " of worker ",
          order.worker.worker.value(), " is of ", now, ", an earlier one was of ", before));
    };
    if (!entry.is_sparse && gradient->dtype() != piece.dtype) {
      return differs(Name(piece.dtype), Name(gradient->dtype()));
    }
    if (gradient->num_bytes != entry.GradientBytes(piece.dtype, piece.rows)) {
      return differs(absl::StrCat(piece.rows, " rows"),
                     gradient->num_bytes / (kRowIndexBytes + entry.row_bytes));
    }
  }
  return absl::OkStatus();
}

// kPending when the gradient is wanted.
PushStatus Shard::Impl::Judge(const PushOrder& order, size_t variable, PushContext* push) {
  EpochState& state = *push->state;
  const PushStatus known = state.ledger.Find(push->key, variable);
  if (known != PushStatus::kPending) {
    ++duplicates_;
    return known;
  }
  // After the end no gradient is counted, not even as stale.
  if (phase_ == Phase::kFinished || HasStopped(state)) return PushStatus::kStale;
  if (state.step.accumulator(variable).IsStale(order.local_step)) {
    return Decide(&state, push->key, variable, PushStatus::kStale);
  }
  if (state.step.accumulator(variable).HasCounted(push->key.worker)) {
    ++duplicates_;
    state.ledger.Record(push->key, variable, PushStatus::kAccepted);
    return PushStatus::kAccepted;
  }
  return PushStatus::kPending;
}

PushStatus Shard::Impl::Decide(EpochState* state, const PushKey& key, size_t variable,
                               PushStatus status) {
  state->ledger.Record(key, variable, status);
  ++(status == PushStatus::kAccepted ? accepted_ : stale_);
  return status;
}

}  // namespace lockstep::ps
