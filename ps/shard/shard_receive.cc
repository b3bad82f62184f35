#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/segmented_reader.h"
#include "common/update/dense_update.h"
#include "ps/shard/shard_impl.h"

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

}  // namespace

// Claims the bytes of the piece that no other message has claimed.
void Shard::Impl::ClaimChunk(const PushOrder& order, size_t piece, uint64_t position,
                             PushContext* push) {
  EpochState& state = *push->state;
  std::shared_ptr<PartialGradient> gradient =
      state.reassembly.Find(push->key, push->variables[piece]);
  if (gradient == nullptr) {
    gradient = AllocateGradient(order, piece, position, push);
    if (gradient == nullptr) return;
  }
  const PushPiece& header = order.pieces[piece];
  PushContext::PendingCopy copy{
      piece, gradient, static_cast<std::byte*>(gradient->buffer.data()), {}};
  for (const ByteRange& range :
       gradient->claimed.Claim(header.offset, header.offset + header.size)) {
    copy.ranges.push_back(
        {position + (range.begin - header.offset), range.begin, range.end - range.begin});
  }
  // A gradient without bytes is whole with its first message.
  const bool is_empty = header.size == 0 && gradient->writers == 0;
  if (!copy.ranges.empty() || is_empty) {
    ++gradient->writers;
    push->copies.push_back(std::move(copy));
  }
}

std::shared_ptr<PartialGradient> Shard::Impl::AllocateGradient(const PushOrder& order, size_t piece,
                                                               uint64_t position,
                                                               PushContext* push) {
  EpochState& state = *push->state;
  const size_t variable = push->variables[piece];
  const CatalogEntry& entry = state.catalog[variable];
  const PushPiece& header = order.pieces[piece];
  // ResolvePush has seen that there is such a size.
  const uint64_t bytes = *entry.GradientBytes(header.dtype, header.rows);
  auto gradient = std::make_shared<PartialGradient>();
  gradient->key = push->key;
  gradient->local_step = order.local_step;
  gradient->variable = variable;
  gradient->num_bytes = bytes;
  if (std::optional<Tensor> borrowed = Borrow(state, order, piece, variable)) {
    state.budget.Borrow(borrowed->num_bytes());
    gradient->buffer = *std::move(borrowed);
    gradient->claimed.Claim(0, bytes);
    gradient->received = gradient->buffer.num_bytes();
    ++gradient->writers;
    state.reassembly.Add(gradient);
    PushContext::PendingCopy copy{piece, gradient, nullptr, {}};
    if (const uint64_t index_bytes = bytes - gradient->received; index_bytes > 0) {
      gradient->indices = Tensor(DType::kInt64, Shape({header.rows}));
      copy.to = static_cast<std::byte*>(gradient->indices.data());
      copy.ranges.push_back({position, 0, index_bytes});
    }
    push->copies.push_back(std::move(copy));
    return nullptr;
  }
  const bool may_stay = order.tensors.lifetime() == ReceivedTensors::Lifetime::kOwned;
  if (!FindRoom(&state, header.dtype, may_stay, gradient.get())) {
    if (push->refused.ok()) {
      push->refused = absl::ResourceExhaustedError(absl::StrCat(
          Quoted(entry), " of push ", order.push_seq.value(), " of worker ",
          order.worker.worker.value(), ": no room for ", bytes, " bytes; ",
          state.budget.held_bytes(), " of ", state.budget.budget(), " are held. Retry in 50 ms"));
    }
    return nullptr;
  }
  state.reassembly.Add(gradient);
  return gradient;
}

bool Shard::Impl::FindRoom(EpochState* state, DType type, bool may_stay,
                           PartialGradient* gradient) {
  const size_t variable = gradient->variable;
  const CatalogEntry& entry = state->catalog[variable];
  if (!may_stay || entry.is_sparse || gradient->num_bytes < kLeastInParts) {
    auto buffer = state->budget.Acquire(variable, type, gradient->num_bytes);
    if (!buffer.has_value()) return false;
    gradient->buffer = *std::move(buffer);
    return true;
  }
  if (!state->budget.Reserve(variable, gradient->num_bytes)) return false;
  gradient->parts =
      std::make_shared<GradientParts>(type, entry.shape, DenseUpdate::RangeElements(entry.dtype));
  gradient->counts_early = !state->variables[variable]->early.arrived.empty() &&
                           gradient->local_step == state->step.StepOf(variable);
  // What has been made of another incarnation's gradient is not made again.
  for (size_t range = 0; range < gradient->parts->num_ranges(); ++range) {
    if (IsMade(*state, variable, range)) gradient->parts->LetGo(range);
  }
  return true;
}

std::optional<Tensor> Shard::Impl::Borrow(const EpochState& state, const PushOrder& order,
                                          size_t piece, size_t variable) {
  if (order.tensors.references().empty() || !state.config.may_borrow()) return std::nullopt;
  LOCKSTEP_CHECK(order.tensors.references().size() == order.pieces.size());
  const CatalogEntry& entry = state.catalog[variable];
  const PushPiece& header = order.pieces[piece];
  const std::span<const std::byte> bytes = order.tensors.references()[piece].values;
  const Shape shape = entry.is_sparse ? WithRows(entry.shape, header.rows) : entry.shape;
  const bool is_whole = header.size == entry.GradientBytes(header.dtype, header.rows);
  if (!is_whole || bytes.empty()) return std::nullopt;
  LOCKSTEP_CHECK(bytes.size() == shape.num_elements() * SizeOf(header.dtype));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % Tensor::kAlignment != 0) return std::nullopt;
  // What is held is only read.
  return Tensor::Borrow(header.dtype, shape, const_cast<std::byte*>(bytes.data()),
                        order.tensors.owner());
}

void Shard::Impl::CopyPayload(const PushOrder& order, PushContext* push) {
  SegmentedReader payload(order.tensors.segments());
  uint64_t bytes_in_parts = 0;
  for (const PushContext::PendingCopy& copy : push->copies) {
    for (const ChunkRange& part : copy.ranges) {
      if (copy.to == nullptr) {
        bytes_in_parts += part.size;
      } else {
        LOCKSTEP_CHECK(payload.CopyFrom(part.from, std::span(copy.to + part.offset, part.size)));
      }
    }
  }
  if (bytes_in_parts == 0) return;
  // A message costs more memory than what is to be kept of it.
  const bool is_worth_keeping =
      bytes_in_parts >= kLeastKept && 2 * bytes_in_parts > order.tensors.num_bytes();
  if (is_worth_keeping && order.tensors.lifetime() == ReceivedTensors::Lifetime::kOwned) {
    push->kept = order.tensors.owned_segments();
    return;
  }
  const auto kept = std::make_shared<CopiedPayload>(bytes_in_parts);
  SegmentedReader again(order.tensors.segments());
  uint64_t copied = 0;
  for (PushContext::PendingCopy& copy : push->copies) {
    if (copy.to != nullptr) continue;
    for (ChunkRange& part : copy.ranges) {
      LOCKSTEP_CHECK(
          again.CopyFrom(part.from, kept->memory.view().bytes().subspan(copied, part.size)));
      part.from = std::exchange(copied, copied + part.size);
    }
  }
  push->kept = {kept, &kept->spans};
}

void Shard::Impl::EndPush(PushContext* push, std::vector<TakenVariable>* all_taken) {
  EpochState& state = *push->state;
  for (PushContext::PendingCopy& copy : push->copies) {
    PartialGradient& gradient = *copy.gradient;
    --gradient.writers;
    for (const ChunkRange& part : copy.ranges) {
      gradient.received += part.size;
      if (gradient.parts != nullptr && !gradient.abandoned) {
        gradient.parts->Add(part.offset, part.size, push->kept, part.from, [&](size_t range) {
          if (gradient.counts_early) Arrived(&state, gradient.variable, range, push);
        });
      }
    }
    PushStatus& status = push->result.statuses[copy.piece];
    if (gradient.abandoned) {
      if (gradient.writers == 0) Release(&state, &gradient, &push->deferred);
      status = state.ledger.Find(gradient.key, gradient.variable);
    } else if (gradient.received == gradient.num_bytes) {
      status = AcceptGradient(&gradient, push, all_taken);
    }
  }
  BeginEarly(push);
  push->result.shard_step = state.step.shard_step();
  push->result.done = HasStopped(state);
}

// A variable of a push is whole.
PushStatus Shard::Impl::AcceptGradient(PartialGradient* gradient, PushContext* push,
                                       std::vector<TakenVariable>* all_taken) {
  EpochState* const state = push->state;
  DeferredCallbacks* const deferred = &push->deferred;
  state->reassembly.Remove(*gradient);
  const size_t variable = gradient->variable;
  const bool is_over = phase_ == Phase::kFinished || HasStopped(*state);
  if (is_over || state->step.accumulator(variable).HasCounted(gradient->key.worker)) {
    Release(state, gradient, deferred);
    return is_over ? PushStatus::kStale : PushStatus::kAccepted;
  }
  const bool arrives_whole =
      gradient->parts == nullptr && gradient->local_step == state->step.StepOf(variable);
  HeldGradient held{
      gradient->key.worker,
      gradient->key.push_seq,
      gradient->local_step,
      {std::move(gradient->buffer), std::move(gradient->indices), std::move(gradient->parts)}};
  const PushStatus status = state->step.Apply(variable, std::move(held));
  Decide(state, gradient->key, variable, status);
  // Asynchronous: others have taken the last steps while this one was coming in.
  if (status == PushStatus::kStale) {
    Release(state, variable, std::move(held.gradient.value), std::move(held.gradient.parts),
            deferred);
    return status;
  }
  if (!TryClose(state, variable, all_taken, deferred) && arrives_whole) {
    const size_t num_ranges = state->variables[variable]->early.arrived.size();
    for (size_t range = 0; range < num_ranges; ++range) Arrived(state, variable, range, push);
  }
  return status;
}

void Shard::Impl::Abandon(EpochState* state, ReassemblyBuffer::Removed removed,
                          DeferredCallbacks* deferred) {
  for (const std::shared_ptr<PartialGradient>& gradient : removed) {
    gradient->abandoned = true;
    Forget(state, *gradient);
    if (gradient->writers == 0) Release(state, gradient.get(), deferred);
  }
}

void Shard::Impl::Release(EpochState* state, PartialGradient* gradient,
                          DeferredCallbacks* deferred) {
  Release(state, gradient->variable, std::move(gradient->buffer), std::move(gradient->parts),
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
