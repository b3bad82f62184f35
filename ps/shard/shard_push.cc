#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"
#include "ps/shard/content_check.h"
#include "ps/shard/shard_impl.h"

namespace lockstep::ps {

absl::StatusOr<PushResult> Shard::Impl::Push(const PushOrder& order) {
  PushInHand push;
  absl::Status begun = CheckPush(order, &push);
  {
    absl::MutexLock lock(&mutex_);
    if (begun.ok()) begun = BeginPush(order, &push);
    if (!begun.ok() || !push.refused.ok()) ++rejected_;
    if (!begun.ok()) return begun;
    if (push.writings.empty()) {
      if (!push.refused.ok()) return push.refused;
      return std::move(push.result);
    }
    ++in_flight_;
  }
  PayloadReader payload(order.payload);
  for (const PushInHand::Writing& writing : push.writings) {
    for (const CopyRange& range : writing.ranges) payload.Copy(range);
  }
  std::vector<Closing> closings;
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    EndPush(&push, &closings, &outbox);
    if (closings.empty()) --in_flight_;
  }
  outbox.Run();
  if (!closings.empty()) push.result.done = Settle(push.state, std::move(closings));
  if (!push.refused.ok()) return push.refused;
  return std::move(push.result);
}

absl::Status Shard::Impl::CheckPush(const PushOrder& order, PushInHand* push) {
  bool refuse_non_finite = false;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitWorker(order.worker));
    push->catalog = state_->shared_catalog;
    refuse_non_finite = state_->refuse_non_finite;
  }
  push->key = {order.worker.worker, order.worker.incarnation, order.push_seq};
  if (order.push_seq == PushSeq()) {
    return absl::InvalidArgumentError("push_seq counts from 1, got 0");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(push->variables, push->catalog->ResolvePush(order));
  if (order.ask) return absl::OkStatus();
  return CheckContents(*push->catalog, push->variables, order, refuse_non_finite);
}

absl::Status Shard::Impl::BeginPush(const PushOrder& order, PushInHand* push) {
  // Again: the view may have changed since. In the same epoch the catalog is the same.
  LOCKSTEP_RETURN_IF_ERROR(AdmitWorker(order.worker));
  HostedState& state = *state_;
  push->state = &state;
  LOCKSTEP_RETURN_IF_ERROR(CheckSameGradient(state, order, *push));
  LOCKSTEP_ASSIGN_OR_RETURN(const PushLedger::Age age,
                            state.ledger.Open(push->key, order.local_step));
  if (age == PushLedger::Age::kNew) {
    Abandon(&state, state.inbox.RemoveIf([&](const Incoming& incoming) {
      return incoming.key.worker == push->key.worker;
    }));
  }
  push->result.verdicts.reserve(order.pieces.size());
  push->writings.reserve(order.pieces.size());
  uint64_t position = 0;  // of the piece in the payload
  for (size_t piece = 0; piece < order.pieces.size(); ++piece) {
    const Verdict verdict = Judge(order, push->variables[piece], push);
    push->result.verdicts.push_back(verdict);
    if (verdict == Verdict::kPending && !order.ask) Receive(order, piece, position, push);
    position += order.pieces[piece].size;
  }
  push->result.shard_step = state.step.shard_step();
  push->result.done = HasStopped(state);
  return absl::OkStatus();
}

// Chunks of one gradient say the same type and number of slices.
absl::Status Shard::Impl::CheckSameGradient(const HostedState& state, const PushOrder& order,
                                            const PushInHand& push) {
  for (size_t i = 0; i < order.pieces.size() && !order.ask; ++i) {
    const CatalogEntry& entry = state.catalog[push.variables[i]];
    const PushPiece& piece = order.pieces[i];
    const auto incoming = state.inbox.Find(push.key, push.variables[i]);
    if (incoming == nullptr) continue;
    const auto differs = [&](const auto& now, const auto& before) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(entry), ": a chunk of push ", order.push_seq.value(), " of worker ",
          order.worker.worker.value(), " is of ", now, ", an earlier one was of ", before));
    };
    if (!entry.is_sparse && incoming->buffer.dtype() != piece.dtype) {
      return differs(Name(piece.dtype), Name(incoming->buffer.dtype()));
    }
    if (incoming->num_bytes != entry.GradientBytes(piece.dtype, piece.rows)) {
      return differs(absl::StrCat(piece.rows, " rows"),
                     incoming->num_bytes / (kRowIndexBytes + entry.row_bytes));
    }
  }
  return absl::OkStatus();
}

// kPending when the gradient is wanted.
Verdict Shard::Impl::Judge(const PushOrder& order, size_t variable, PushInHand* push) {
  HostedState& state = *push->state;
  const Verdict known = state.ledger.Find(push->key, variable);
  if (known != Verdict::kPending) {
    ++duplicates_;
    return known;
  }
  // After the end nothing is counted any more, not even as stale.
  if (phase_ == Phase::kFinished || HasStopped(state)) return Verdict::kStale;
  if (state.step.IsStale(variable, order.local_step)) {
    return Decide(&state, push->key, variable, Verdict::kStale);
  }
  if (state.step.IsCounted(variable, push->key.worker)) {
    ++duplicates_;
    state.ledger.Record(push->key, variable, Verdict::kAccepted);
    return Verdict::kAccepted;
  }
  return Verdict::kPending;
}

// Claims the bytes that the piece brings and nobody else has brought.
void Shard::Impl::Receive(const PushOrder& order, size_t piece, uint64_t position,
                          PushInHand* push) {
  HostedState& state = *push->state;
  const size_t variable = push->variables[piece];
  std::shared_ptr<Incoming> incoming = state.inbox.Find(push->key, variable);
  if (incoming == nullptr) {
    // ResolvePush has seen that there is such a size.
    const DType type = order.pieces[piece].dtype;
    const uint64_t bytes = *state.catalog[variable].GradientBytes(type, order.pieces[piece].rows);
    std::optional<Tensor> buffer = InPlace(state, order, piece, variable);
    const bool is_here = buffer.has_value();
    const uint64_t bytes_here = is_here ? buffer->num_bytes() : 0;
    if (is_here) {
      state.budget.Borrow(buffer->num_bytes());
    } else {
      buffer = state.budget.Acquire(variable, type, bytes,
                                    [&state](size_t other) { return state.step.StepOf(other); });
    }
    if (!buffer.has_value()) {
      if (push->refused.ok()) {
        push->refused = absl::ResourceExhaustedError(absl::StrCat(
            "variable \"", state.catalog[variable].name, "\" of push ", order.push_seq.value(),
            " of worker ", order.worker.worker.value(), ": no room for ", bytes, " bytes; ",
            state.budget.held_bytes(), " of ", state.budget.budget(), " are held. Retry in 50 ms"));
      }
      return;
    }
    incoming = std::make_shared<Incoming>();
    incoming->key = push->key;
    incoming->local_step = order.local_step;
    incoming->variable = variable;
    incoming->buffer = *std::move(buffer);
    incoming->num_bytes = bytes;
    state.inbox.Add(incoming);
    if (is_here) {
      incoming->claimed.Claim(0, bytes);
      incoming->received = bytes_here;
      ++incoming->writers;
      PushInHand::Writing writing{piece, incoming, {}};
      if (const uint64_t index_bytes = bytes - bytes_here; index_bytes > 0) {
        incoming->indices = Tensor(DType::kInt64, Shape({order.pieces[piece].rows}));
        writing.ranges.push_back(
            {position, static_cast<std::byte*>(incoming->indices.data()), index_bytes});
      }
      push->writings.push_back(std::move(writing));
      return;
    }
  }
  const PushPiece& header = order.pieces[piece];
  PushInHand::Writing writing{piece, incoming, {}};
  for (const ByteRange& range :
       incoming->claimed.Claim(header.offset, header.offset + header.size)) {
    writing.ranges.push_back({position + (range.begin - header.offset),
                              static_cast<std::byte*>(incoming->buffer.data()) + range.begin,
                              range.end - range.begin});
  }
  // A gradient without bytes is brought by whoever comes first.
  const bool is_empty = header.size == 0 && incoming->writers == 0;
  if (!writing.ranges.empty() || is_empty) {
    ++incoming->writers;
    push->writings.push_back(std::move(writing));
  }
}

std::optional<Tensor> Shard::Impl::InPlace(const HostedState& state, const PushOrder& order,
                                           size_t piece, size_t variable) {
  if (order.memory == nullptr || !state.holds_in_place) return std::nullopt;
  LOCKSTEP_CHECK(order.in_place.size() == order.pieces.size());
  const CatalogEntry& entry = state.catalog[variable];
  const PushPiece& header = order.pieces[piece];
  const std::span<const std::byte> bytes = order.in_place[piece];
  const Shape shape = entry.is_sparse ? WithRows(entry.shape, header.rows) : entry.shape;
  const bool is_whole = header.size == entry.GradientBytes(header.dtype, header.rows);
  if (!is_whole || bytes.empty()) return std::nullopt;
  LOCKSTEP_CHECK(bytes.size() == shape.num_elements() * SizeOf(header.dtype));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % Tensor::kAlignment != 0) return std::nullopt;
  // What is held is only read.
  return Tensor::Borrow(header.dtype, shape, const_cast<std::byte*>(bytes.data()), order.memory);
}

void Shard::Impl::EndPush(PushInHand* push, std::vector<Closing>* closings, Outbox* outbox) {
  HostedState& state = *push->state;
  for (PushInHand::Writing& writing : push->writings) {
    Incoming& incoming = *writing.incoming;
    --incoming.writers;
    for (const CopyRange& range : writing.ranges) incoming.received += range.size;
    Verdict& verdict = push->result.verdicts[writing.piece];
    if (incoming.abandoned) {
      if (incoming.writers == 0) {
        state.budget.Release(incoming.variable, std::move(incoming.buffer));
      }
      verdict = state.ledger.Find(incoming.key, incoming.variable);
    } else if (incoming.received == incoming.num_bytes) {
      verdict = Count(&state, &incoming, closings, outbox);
    }
  }
  push->result.shard_step = state.step.shard_step();
  push->result.done = HasStopped(state);
}

// A variable of a push is whole.
Verdict Shard::Impl::Count(HostedState* state, Incoming* incoming, std::vector<Closing>* closings,
                           Outbox* outbox) {
  state->inbox.Remove(*incoming);
  const size_t variable = incoming->variable;
  const bool is_over = phase_ == Phase::kFinished || HasStopped(*state);
  if (is_over || state->step.IsCounted(variable, incoming->key.worker)) {
    state->budget.Release(variable, std::move(incoming->buffer));
    return is_over ? Verdict::kStale : Verdict::kAccepted;
  }
  // Asynchronous: others have taken the last steps while this one was coming in.
  if (state->step.IsStale(variable, incoming->local_step)) {
    state->budget.Release(variable, std::move(incoming->buffer));
    return Decide(state, incoming->key, variable, Verdict::kStale);
  }
  state->step.Hold(variable, {incoming->key.worker, incoming->key.push_seq, incoming->local_step,
                              std::move(incoming->buffer), std::move(incoming->indices)});
  const Verdict verdict = Decide(state, incoming->key, variable, Verdict::kAccepted);
  if (std::optional<Closing> closing = state->step.TryClose(variable)) {
    Taken(state, *closing, outbox);
    closings->push_back(*std::move(closing));
  }
  return verdict;
}

void Shard::Impl::Abandon(HostedState* state, Inbox::Removed removed) {
  for (const std::shared_ptr<Incoming>& incoming : removed) {
    incoming->abandoned = true;
    if (incoming->writers == 0) {
      state->budget.Release(incoming->variable, std::move(incoming->buffer));
    }
  }
}

Verdict Shard::Impl::Decide(HostedState* state, const PushKey& key, size_t variable,
                            Verdict verdict) {
  state->ledger.Record(key, variable, verdict);
  ++(verdict == Verdict::kAccepted ? accepted_ : stale_);
  return verdict;
}

}  // namespace lockstep::ps
