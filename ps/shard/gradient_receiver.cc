#include "ps/shard/gradient_receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/segmented_reader.h"

namespace lockstep::ps {
namespace {

// What a message brings of a gradient in parts is copied, if it is less.
constexpr uint64_t kLeastKept = uint64_t{16} << 10;

struct CopiedPayload {
  explicit CopiedPayload(uint64_t size)
      : memory(DType::kUInt8, Shape({static_cast<int64_t>(size)})),
        spans({memory.view().bytes()}) {}

  Tensor memory;
  const GradientParts::Payload spans;
};

}  // namespace

GradientReceiver::GradientReceiver(const EpochVariables* variables, const StepMachine* step,
                                   HeldBudget budget, const Clock* clock, PushCounts* counts)
    : variables_(*variables),
      step_(*step),
      clock_(*clock),
      ledger_(variables->catalog.size()),
      budget_(std::move(budget)),
      counts_(*counts) {
  for (const auto& entry : variables_.entries) arrived_.emplace_back(entry->num_chunks);
  BeginStep();
}

void GradientReceiver::BeginStep() {
  for (size_t variable = 0; variable < variables_.entries.size(); ++variable) {
    // They close with the beginning of the step; those that are never trained have no room.
    if (!step_.Expects(variable) && step_.turns().IsTrained(variable)) budget_.Close(variable);
  }
}

absl::Status GradientReceiver::Claim(bool is_over, PushContext* push) {
  const PushArguments& arguments = push->arguments;
  const EpochConfig& config = variables_.config;
  if (config.applies_early_chunks() &&
      arguments.worker.worker.value() >= config.replicas_to_aggregate()) {
    return absl::InvalidArgumentError(
        absl::StrCat("push of worker ", arguments.worker.worker.value(),
                     ": each step takes one gradient of every replica, and these are workers 0 to ",
                     config.replicas_to_aggregate() - 1));
  }
  LOCKSTEP_RETURN_IF_ERROR(config.CheckTower(arguments.worker));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameGradient(*push));
  LOCKSTEP_ASSIGN_OR_RETURN(const PushLedger::Age age,
                            ledger_.Open(push->key, arguments.local_step));
  if (age == PushLedger::Age::kNew) {
    Abandon(reassembly_.RemoveOf(push->key.pusher()), push->deferred);
  }
  push->result.statuses.reserve(arguments.pieces.size());
  if (arguments.tensors.references().empty()) {
    push->copies.reserve(arguments.pieces.size());
  } else {
    push->whole.reserve(arguments.pieces.size());
  }
  uint64_t position = 0;  // of the piece in the payload
  for (size_t piece = 0; piece < arguments.pieces.size(); ++piece) {
    const PushStatus status = Judge(is_over, push->variables[piece], *push);
    push->result.statuses.push_back(status);
    const bool is_wanted = status == PushStatus::kPending && !arguments.ask;
    if (is_wanted && !TakeWhole(piece, push)) ClaimChunk(piece, position, push);
    position += arguments.pieces[piece].size;
  }
  budget_.TakeFreed(push->deferred->tensors());
  return absl::OkStatus();
}

// Chunks of one gradient say the same type and number of slices.
absl::Status GradientReceiver::CheckSameGradient(const PushContext& push) const {
  const PushArguments& arguments = push.arguments;
  for (size_t i = 0; i < arguments.pieces.size() && !arguments.ask; ++i) {
    const CatalogEntry& entry = variables_.catalog[push.variables[i]];
    const PushPiece& piece = arguments.pieces[i];
    const auto gradient = reassembly_.Find(push.key, push.variables[i]);
    if (gradient == nullptr) continue;
    const auto differs = [&](const auto& now, const auto& before) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(entry), ": a chunk of push ", arguments.push_seq.value(), " of worker ",
          arguments.worker.worker.value(), " is of ", now, ", an earlier one was of ", before));
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
PushStatus GradientReceiver::Judge(bool is_over, size_t variable, const PushContext& push) {
  const PushStatus known = ledger_.Find(push.key, variable);
  if (known != PushStatus::kPending) {
    ++counts_.duplicates;
    return known;
  }
  // After the end no gradient is counted, not even as stale.
  if (is_over) return PushStatus::kStale;
  if (step_.accumulator(variable).IsStale(push.arguments.local_step)) {
    return Decide(push.key, variable, PushStatus::kStale);
  }
  if (step_.accumulator(variable).HasCounted(push.key.worker)) {
    ++counts_.duplicates;
    ledger_.Record(push.key, variable, PushStatus::kAccepted);
    return PushStatus::kAccepted;
  }
  return PushStatus::kPending;
}

PushStatus GradientReceiver::Decide(const PushKey& key, size_t variable, PushStatus status) {
  ledger_.Record(key, variable, status);
  ++(status == PushStatus::kAccepted ? counts_.accepted : counts_.stale);
  return status;
}

bool GradientReceiver::TakeWhole(size_t piece, PushContext* push) {
  const size_t variable = push->variables[piece];
  if (variables_.catalog[variable].is_sparse) return false;  // its row indices are copied
  if (reassembly_.Find(push->key, variable) != nullptr) return false;
  std::optional<Tensor> borrowed = Borrow(piece, *push);
  if (!borrowed.has_value()) return false;
  budget_.Borrow(borrowed->num_bytes());
  push->whole.push_back({piece, {*std::move(borrowed)}});
  return true;
}

void GradientReceiver::ClaimChunk(size_t piece, uint64_t position, PushContext* push) {
  std::shared_ptr<PartialGradient> gradient = reassembly_.Find(push->key, push->variables[piece]);
  if (gradient == nullptr) {
    gradient = AllocateGradient(piece, position, push);
    if (gradient == nullptr) return;
  }
  const PushPiece& header = push->arguments.pieces[piece];
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

std::shared_ptr<PartialGradient> GradientReceiver::AllocateGradient(size_t piece, uint64_t position,
                                                                    PushContext* push) {
  const PushArguments& arguments = push->arguments;
  const size_t variable = push->variables[piece];
  const CatalogEntry& entry = variables_.catalog[variable];
  const PushPiece& header = arguments.pieces[piece];
  // ResolvePush has seen that there is such a size.
  const uint64_t bytes = *entry.GradientBytes(header.dtype, header.rows);
  auto gradient = std::make_shared<PartialGradient>();
  gradient->key = push->key;
  gradient->local_step = arguments.local_step;
  gradient->variable = variable;
  gradient->num_bytes = bytes;
  if (std::optional<Tensor> borrowed = Borrow(piece, *push)) {
    budget_.Borrow(borrowed->num_bytes());
    gradient->buffer = *std::move(borrowed);
    gradient->claimed.Claim(0, bytes);
    gradient->received = gradient->buffer.num_bytes();
    ++gradient->writers;
    reassembly_.Add(gradient);
    gradient->indices = Tensor(DType::kInt64, Shape({header.rows}));
    auto* const indices = static_cast<std::byte*>(gradient->indices.data());
    const uint64_t index_bytes = bytes - gradient->received;
    push->copies.push_back({piece, gradient, indices, {{position, 0, index_bytes}}});
    return nullptr;
  }
  if (!push->unread_error.ok()) {
    push->refused.Update(push->unread_error);
    return nullptr;
  }
  const bool may_stay = arguments.tensors.lifetime() == ReceivedTensors::Lifetime::kOwned;
  if (!FindRoom(header.dtype, may_stay, gradient.get()) &&
      !(MakeRoom(piece, bytes, push) && FindRoom(header.dtype, may_stay, gradient.get()))) {
    if (push->refused.ok()) {
      push->refused = absl::ResourceExhaustedError(absl::StrCat(
          Quoted(entry), " of push ", arguments.push_seq.value(), " of worker ",
          arguments.worker.worker.value(), ": no room for ", bytes, " bytes; ",
          budget_.held_bytes(), " of ", budget_.budget(), " are held. Retry in 50 ms"));
    }
    return nullptr;
  }
  reassembly_.Add(gradient);
  return gradient;
}

std::optional<Tensor> GradientReceiver::Borrow(size_t piece, const PushContext& push) const {
  const PushArguments& arguments = push.arguments;
  if (arguments.tensors.references().empty() || !variables_.config.may_borrow())
    return std::nullopt;
  LOCKSTEP_CHECK(arguments.tensors.references().size() == arguments.pieces.size());
  const CatalogEntry& entry = variables_.catalog[push.variables[piece]];
  const PushPiece& header = arguments.pieces[piece];
  const std::span<const std::byte> bytes = arguments.tensors.references()[piece].values;
  const Shape shape = entry.is_sparse ? WithRows(entry.shape, header.rows) : entry.shape;
  const bool is_whole = header.size == entry.GradientBytes(header.dtype, header.rows);
  if (!is_whole || bytes.empty()) return std::nullopt;
  LOCKSTEP_CHECK(bytes.size() == shape.num_elements() * SizeOf(header.dtype));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % Tensor::kAlignment != 0) return std::nullopt;
  // What is held is only read.
  return Tensor::Borrow(header.dtype, shape, const_cast<std::byte*>(bytes.data()),
                        arguments.tensors.owner());
}

void GradientReceiver::CopyPayload(PushContext* push) {
  const PushArguments& arguments = push->arguments;
  SegmentedReader payload(arguments.tensors.segments());
  uint64_t bytes_in_parts = 0;
  for (const PushContext::PendingCopy& copy : push->copies) {
    for (const PushContext::ChunkRange& part : copy.ranges) {
      if (copy.to == nullptr) {
        bytes_in_parts += part.size;
      } else {
        LOCKSTEP_CHECK(payload.CopyFrom(part.from, std::span(copy.to + part.offset, part.size)));
      }
    }
  }
  if (bytes_in_parts == 0) return;
  // The budget does not count the rest of a message that is kept: a tenth of the whole at most.
  const bool is_worth_keeping =
      bytes_in_parts >= kLeastKept && 10 * bytes_in_parts > 9 * arguments.tensors.num_bytes();
  if (is_worth_keeping && arguments.tensors.lifetime() == ReceivedTensors::Lifetime::kOwned) {
    push->kept = arguments.tensors.owned_segments();
    return;
  }
  const auto kept = std::make_shared<CopiedPayload>(bytes_in_parts);
  SegmentedReader again(arguments.tensors.segments());
  uint64_t copied = 0;
  for (PushContext::PendingCopy& copy : push->copies) {
    if (copy.to != nullptr) continue;
    for (PushContext::ChunkRange& part : copy.ranges) {
      LOCKSTEP_CHECK(
          again.CopyFrom(part.from, kept->memory.view().bytes().subspan(copied, part.size)));
      part.from = std::exchange(copied, copied + part.size);
    }
  }
  push->kept = {kept, &kept->spans};
}

bool GradientReceiver::Receive(const PushContext::PendingCopy& copy, PushContext* push) {
  PartialGradient& gradient = *copy.gradient;
  --gradient.writers;
  for (const PushContext::ChunkRange& part : copy.ranges) {
    gradient.received += part.size;
    if (gradient.parts != nullptr && !gradient.abandoned) {
      gradient.parts->Add(part.offset, part.size, push->kept, part.from, [&](size_t chunk) {
        if (gradient.counts_early) AddChunk(gradient.variable, chunk, push);
      });
    }
  }
  if (gradient.abandoned) {
    if (gradient.writers == 0) Release(gradient.variable, gradient.Take(), push->deferred);
    push->result.statuses[copy.piece] = ledger_.Find(gradient.key, gradient.variable);
    return false;
  }
  if (gradient.received < gradient.num_bytes) return false;
  reassembly_.Remove(gradient);
  return true;
}

void GradientReceiver::AddChunk(size_t variable, size_t chunk, PushContext* push) {
  if (++arrived_[variable][chunk] == variables_.config.replicas_to_aggregate()) {
    push->ready.push_back({variable, chunk, {}});
  }
}

void GradientReceiver::AddWhole(size_t variable, PushContext* push) {
  for (size_t chunk = 0; chunk < arrived_[variable].size(); ++chunk) {
    AddChunk(variable, chunk, push);
  }
}

bool GradientReceiver::IsApplied(size_t variable, size_t chunk) const {
  // Once it is taken, the update is another thread's, and of a step that is over.
  if (step_.IsTaken(variable)) return false;
  const std::optional<DenseUpdate>& update = variables_.entries[variable]->early;
  return update.has_value() && update->IsEarly(chunk);
}

bool GradientReceiver::IsReady(size_t variable, size_t chunk) const {
  return arrived_[variable][chunk] >= variables_.config.replicas_to_aggregate() &&
         !IsApplied(variable, chunk);
}

ReadyChunk::Gradients GradientReceiver::GradientsOf(size_t variable) const {
  ReadyChunk::Gradients gradients;
  for (uint32_t i = 0; i < variables_.config.replicas_to_aggregate(); ++i) {
    const WorkerIndex worker(i);
    const HeldGradient* const whole = step_.accumulator(variable).Find(worker);
    if (whole != nullptr) {
      gradients.push_back(SourceOf(whole->gradient));
    } else {
      const auto gradient = reassembly_.Find(Pusher{worker}, variable);
      LOCKSTEP_CHECK(gradient != nullptr && gradient->parts != nullptr);
      gradients.push_back({gradient->parts->view(), gradient->parts});
    }
  }
  return gradients;
}

void GradientReceiver::OnTaken(const TakenVariable& taken, DeferredCallbacks* deferred) {
  std::ranges::fill(arrived_[taken.variable], 0);
  budget_.Close(taken.variable);
  ReassemblyBuffer::Removed losers =
      reassembly_.RemoveIf(taken.variable, [&](const PartialGradient& gradient) {
        return step_.accumulator(taken.variable).IsStale(gradient.local_step);
      });
  for (const std::shared_ptr<PartialGradient>& loser : losers) {
    Decide(loser->key, loser->variable, PushStatus::kStale);
  }
  Abandon(losers, deferred);
}

void GradientReceiver::AbandonIf(absl::FunctionRef<bool(const PushKey&)> condition,
                                 DeferredCallbacks* deferred) {
  Abandon(reassembly_.RemoveIf(
              [&](const PartialGradient& gradient) { return condition(gradient.key); }),
          deferred);
}

void GradientReceiver::Abandon(const ReassemblyBuffer::Removed& removed,
                               DeferredCallbacks* deferred) {
  for (const std::shared_ptr<PartialGradient>& gradient : removed) {
    const size_t variable = gradient->variable;
    gradient->abandoned = true;
    // Once the variable has closed, other chunks are counted.
    if (gradient->counts_early && gradient->local_step == step_.StepOf(variable)) {
      for (size_t chunk = 0; chunk < arrived_[variable].size(); ++chunk) {
        const bool is_applied = IsApplied(variable, chunk);
        if (gradient->parts->IsWhole(chunk) && !is_applied) --arrived_[variable][chunk];
      }
    }
    if (gradient->writers == 0) Release(variable, gradient->Take(), deferred);
  }
}

void GradientReceiver::Release(size_t variable, Gradient gradient, DeferredCallbacks* deferred) {
  if (gradient.parts == nullptr) {
    budget_.Release(variable, std::move(gradient.value));
    budget_.TakeFreed(deferred->tensors());
  } else {
    budget_.GiveBack(variable, gradient.parts->num_bytes());
    deferred->LetGo(std::move(gradient.parts));
  }
}

}  // namespace lockstep::ps
