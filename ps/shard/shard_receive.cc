#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/segmented_reader.h"
#include "ps/shard/shard_impl.h"
#include "ps/step/dense_update.h"

namespace lockstep::ps {
namespace {

// Gradients of fewer bytes are copied: it costs less than to keep the messages that brought them.
constexpr uint64_t kLeastInParts = uint64_t{256} << 10;
// So is what a message brings of them, if it is less.
constexpr uint64_t kLeastKept = uint64_t{16} << 10;

struct CopiedPayload {
  explicit CopiedPayload(uint64_t size)
      : memory(DType::kUInt8, Shape({static_cast<int64_t>(size)})),
        spans({memory.view().bytes()}) {}

  Tensor memory;
  const GradientParts::Payload spans;
};

uint64_t BytesOf(const std::vector<std::span<const std::byte>>& spans) {
  return std::transform_reduce(spans.begin(), spans.end(), uint64_t{0}, std::plus<>(),
                               [](const auto& span) { return span.size(); });
}

}  // namespace

// Claims the bytes that the piece brings and nobody else has brought.
void Shard::Impl::Receive(const PushOrder& order, size_t piece, uint64_t position,
                          PushInHand* push) {
  EpochState& state = *push->state;
  std::shared_ptr<PartialGradient> incoming =
      state.reassembly.Find(push->key, push->variables[piece]);
  if (incoming == nullptr) {
    incoming = Begin(order, piece, position, push);
    if (incoming == nullptr) return;
  }
  const PushPiece& header = order.pieces[piece];
  PushInHand::Writing writing{
      piece, incoming, static_cast<std::byte*>(incoming->buffer.data()), {}};
  for (const ByteRange& range :
       incoming->claimed.Claim(header.offset, header.offset + header.size)) {
    writing.brought.push_back(
        {position + (range.begin - header.offset), range.begin, range.end - range.begin});
  }
  // A gradient without bytes is brought by whoever comes first.
  const bool is_empty = header.size == 0 && incoming->writers == 0;
  if (!writing.brought.empty() || is_empty) {
    ++incoming->writers;
    push->writings.push_back(std::move(writing));
  }
}

std::shared_ptr<PartialGradient> Shard::Impl::Begin(const PushOrder& order, size_t piece,
                                                    uint64_t position, PushInHand* push) {
  EpochState& state = *push->state;
  const size_t variable = push->variables[piece];
  const CatalogEntry& entry = state.catalog[variable];
  const PushPiece& header = order.pieces[piece];
  // ResolvePush has seen that there is such a size.
  const uint64_t bytes = *entry.GradientBytes(header.dtype, header.rows);
  auto incoming = std::make_shared<PartialGradient>();
  incoming->key = push->key;
  incoming->local_step = order.local_step;
  incoming->variable = variable;
  incoming->num_bytes = bytes;
  if (std::optional<Tensor> in_place = InPlace(state, order, piece, variable)) {
    state.budget.Borrow(in_place->num_bytes());
    incoming->buffer = *std::move(in_place);
    incoming->claimed.Claim(0, bytes);
    incoming->received = incoming->buffer.num_bytes();
    ++incoming->writers;
    state.reassembly.Add(incoming);
    PushInHand::Writing writing{piece, incoming, nullptr, {}};
    if (const uint64_t index_bytes = bytes - incoming->received; index_bytes > 0) {
      incoming->indices = Tensor(DType::kInt64, Shape({header.rows}));
      writing.to = static_cast<std::byte*>(incoming->indices.data());
      writing.brought.push_back({position, 0, index_bytes});
    }
    push->writings.push_back(std::move(writing));
    return nullptr;
  }
  const bool may_stay = order.kept_payload != nullptr;
  if (!FindRoom(&state, header.dtype, may_stay, incoming.get())) {
    if (push->refused.ok()) {
      push->refused = absl::ResourceExhaustedError(absl::StrCat(
          Quoted(entry), " of push ", order.push_seq.value(), " of worker ",
          order.worker.worker.value(), ": no room for ", bytes, " bytes; ",
          state.budget.held_bytes(), " of ", state.budget.budget(), " are held. Retry in 50 ms"));
    }
    return nullptr;
  }
  state.reassembly.Add(incoming);
  return incoming;
}

bool Shard::Impl::FindRoom(EpochState* state, DType type, bool may_stay,
                           PartialGradient* incoming) {
  const size_t variable = incoming->variable;
  const CatalogEntry& entry = state->catalog[variable];
  if (!may_stay || entry.is_sparse || incoming->num_bytes < kLeastInParts) {
    auto buffer = state->budget.Acquire(variable, type, incoming->num_bytes);
    if (!buffer.has_value()) return false;
    incoming->buffer = *std::move(buffer);
    return true;
  }
  if (!state->budget.Reserve(variable, incoming->num_bytes)) return false;
  incoming->parts =
      std::make_shared<GradientParts>(type, entry.shape, DenseUpdate::RangeElements(entry.dtype));
  incoming->counts_early = !state->variables[variable]->early.arrived.empty() &&
                           incoming->local_step == state->step.StepOf(variable);
  // What has been made of another incarnation's gradient is not made again.
  for (size_t range = 0; range < incoming->parts->num_ranges(); ++range) {
    if (IsMade(*state, variable, range)) incoming->parts->LetGo(range);
  }
  return true;
}

std::optional<Tensor> Shard::Impl::InPlace(const EpochState& state, const PushOrder& order,
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

void Shard::Impl::BringIn(const PushOrder& order, PushInHand* push) {
  SegmentedReader payload(order.payload);
  uint64_t bytes_in_parts = 0;
  for (const PushInHand::Writing& writing : push->writings) {
    for (const Brought& part : writing.brought) {
      if (writing.to == nullptr) {
        bytes_in_parts += part.size;
      } else {
        LOCKSTEP_CHECK(payload.CopyFrom(part.from, std::span(writing.to + part.offset, part.size)));
      }
    }
  }
  if (bytes_in_parts == 0) return;
  // A message costs more memory than what is to be kept of it.
  const bool is_worth_keeping =
      bytes_in_parts >= kLeastKept && 2 * bytes_in_parts > BytesOf(order.payload);
  if (order.kept_payload != nullptr && is_worth_keeping) {
    push->kept = order.kept_payload;
    return;
  }
  const auto copy = std::make_shared<CopiedPayload>(bytes_in_parts);
  SegmentedReader again(order.payload);
  uint64_t copied = 0;
  for (PushInHand::Writing& writing : push->writings) {
    if (writing.to != nullptr) continue;
    for (Brought& part : writing.brought) {
      LOCKSTEP_CHECK(
          again.CopyFrom(part.from, copy->memory.view().bytes().subspan(copied, part.size)));
      part.from = std::exchange(copied, copied + part.size);
    }
  }
  push->kept = {copy, &copy->spans};
}

void Shard::Impl::EndPush(PushInHand* push, std::vector<TakenGradients>* all_taken) {
  EpochState& state = *push->state;
  for (PushInHand::Writing& writing : push->writings) {
    PartialGradient& incoming = *writing.incoming;
    --incoming.writers;
    for (const Brought& part : writing.brought) {
      incoming.received += part.size;
      if (incoming.parts != nullptr && !incoming.abandoned) {
        incoming.parts->Add(part.offset, part.size, push->kept, part.from, [&](size_t range) {
          if (incoming.counts_early) Arrived(&state, incoming.variable, range, push);
        });
      }
    }
    Verdict& verdict = push->result.verdicts[writing.piece];
    if (incoming.abandoned) {
      if (incoming.writers == 0) Release(&state, &incoming, &push->deferred);
      verdict = state.ledger.Find(incoming.key, incoming.variable);
    } else if (incoming.received == incoming.num_bytes) {
      verdict = Count(&incoming, push, all_taken);
    }
  }
  BeginEarly(push);
  push->result.shard_step = state.step.shard_step();
  push->result.done = HasStopped(state);
}

// A variable of a push is whole.
Verdict Shard::Impl::Count(PartialGradient* incoming, PushInHand* push,
                           std::vector<TakenGradients>* all_taken) {
  EpochState* const state = push->state;
  DeferredCallbacks* const deferred = &push->deferred;
  state->reassembly.Remove(*incoming);
  const size_t variable = incoming->variable;
  const bool is_over = phase_ == Phase::kFinished || HasStopped(*state);
  if (is_over || state->step.IsCounted(variable, incoming->key.worker)) {
    Release(state, incoming, deferred);
    return is_over ? Verdict::kStale : Verdict::kAccepted;
  }
  // Asynchronous: others have taken the last steps while this one was coming in.
  if (state->step.IsStale(variable, incoming->local_step)) {
    Release(state, incoming, deferred);
    return Decide(state, incoming->key, variable, Verdict::kStale);
  }
  const bool arrives_whole =
      incoming->parts == nullptr && incoming->local_step == state->step.StepOf(variable);
  state->step.Hold(variable, {incoming->key.worker, incoming->key.push_seq, incoming->local_step,
                              std::move(incoming->buffer), std::move(incoming->indices),
                              std::move(incoming->parts)});
  const Verdict verdict = Decide(state, incoming->key, variable, Verdict::kAccepted);
  if (!TryClose(state, variable, all_taken, deferred) && arrives_whole) {
    const size_t num_ranges = state->variables[variable]->early.arrived.size();
    for (size_t range = 0; range < num_ranges; ++range) Arrived(state, variable, range, push);
  }
  return verdict;
}

void Shard::Impl::Abandon(EpochState* state, ReassemblyBuffer::Removed removed,
                          DeferredCallbacks* deferred) {
  for (const std::shared_ptr<PartialGradient>& incoming : removed) {
    incoming->abandoned = true;
    Forget(state, *incoming);
    if (incoming->writers == 0) Release(state, incoming.get(), deferred);
  }
}

void Shard::Impl::Release(EpochState* state, PartialGradient* incoming,
                          DeferredCallbacks* deferred) {
  Release(state, incoming->variable, std::move(incoming->buffer), std::move(incoming->parts),
          deferred);
}

void Shard::Impl::Release(EpochState* state, size_t variable, Tensor buffer,
                          std::shared_ptr<GradientParts> parts, DeferredCallbacks* deferred) {
  if (parts == nullptr) {
    state->budget.Release(variable, std::move(buffer));
  } else {
    state->budget.GiveBack(variable, parts->num_bytes());
    deferred->LetGo(std::move(parts));
  }
}

}  // namespace lockstep::ps
