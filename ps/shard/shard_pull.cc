#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/seq_lock.h"
#include "ps/shard/pulled_rows.h"
#include "ps/shard/shard_impl.h"
#include "ps/shard/shared_table.h"

namespace lockstep::ps {
namespace {

// value_of(piece): the tensor to read, which is narrowed here where the piece wants half its width.
// What is copied out later (pulled_rows.h) gets the whole tensor.
template <typename ValueOf>
PullResult Read(const EpochState& state, GlobalStep version,
                const std::vector<ResolvedPiece>& pieces, ValueOf value_of) {
  PullResult result{version, {}};
  result.pieces.reserve(pieces.size());
  for (const ResolvedPiece& piece : pieces) {
    std::shared_ptr<const Tensor> value = value_of(piece);
    if (value->dtype() != piece.type) {
      value = state.variables[piece.variable]->variable.Narrowed(value, piece.type);
    }
    PulledPiece pulled{state.catalog[piece.variable].id, piece.offset, piece.size,
                       value->view().bytes()};
    const std::shared_ptr<SharedTable>& shared = state.variables[piece.variable]->table;
    if (shared != nullptr && value == shared->table->value()) {
      pulled.table = shared;
    } else if (piece.rows.empty()) {
      pulled.bytes = pulled.bytes.subspan(piece.offset, piece.size);
    }
    pulled.owner = std::move(value);
    result.pieces.push_back(std::move(pulled));
  }
  return result;
}

// Gives all pieces by reference if each of them is in the lent memory. Otherwise none.
void ReferTo(const LentMemory& memory, PullResult* result) {
  for (PulledPiece& piece : result->pieces) {
    const auto* const value = static_cast<const std::byte*>(piece.owner->data());
    // Wraps for an address before the memory.
    const uint64_t distance =
        reinterpret_cast<uintptr_t>(value) - reinterpret_cast<uintptr_t>(memory.bytes.data());
    if (distance >= memory.bytes.size()) return;
    piece.seq_lock = reinterpret_cast<const SeqLock*>(value - SeqLock::kRoom);
    // A reader cannot tell a value that is ahead of the others from a later one.
    if (piece.seq_lock->version() > result->version.value()) return;
  }
  for (PulledPiece& piece : result->pieces) {
    if (piece.table != nullptr) piece.bytes = piece.bytes.subspan(piece.offset);
    piece.owner.reset();
    piece.table.reset();
  }
  result->by_reference = true;
}

// For messages: peers may ask for any version.
int64_t StepBefore(GlobalStep version) { return SaturatingSubtract(version.value(), 1); }

absl::StatusOr<PullResult> ReadAverages(const EpochState& state, GlobalStep version,
                                        const std::vector<ResolvedPiece>& pieces) {
  const auto kept = state.snapshots.Find(version);
  if (kept == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("averages of version ", version.value(),
                                                      ": it is not kept; the grant of step ",
                                                      StepBefore(version), " must ask for that"));
  }
  return Read(state, version, pieces, [&](const ResolvedPiece& piece) {
    const auto& average = kept->averages[piece.variable];
    return average != nullptr ? average : kept->values[piece.variable];
  });
}

// Where among the slots of a variable the one of this name is.
std::optional<size_t> FindSlot(const EpochState& state, const Snapshot& kept, size_t variable,
                               const std::string& name) {
  const absl::Span<const SlotSpec> slots = state.variables[variable]->rule->slots();
  for (size_t i = 0; i < kept.slots[variable].size(); ++i) {
    if (slots[i].name == name) return i;
  }
  return std::nullopt;
}

absl::StatusOr<PullResult> ReadSlot(const EpochState& state, GlobalStep version,
                                    const std::string& slot,
                                    const std::vector<ResolvedPiece>& pieces) {
  const auto kept = state.snapshots.Find(version);
  if (kept == nullptr || !kept->has_slots) {
    return absl::FailedPreconditionError(absl::StrCat(
        "slot \"", slot, "\" of version ", version.value(), ": it is not kept; the grant of step ",
        StepBefore(version), " must ask for slots"));
  }
  for (const ResolvedPiece& piece : pieces) {
    if (FindSlot(state, *kept, piece.variable, slot).has_value()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(state.catalog[piece.variable]), ": it has no slot \"", slot, "\""));
  }
  return Read(state, version, pieces, [&](const ResolvedPiece& piece) {
    const size_t index = *FindSlot(state, *kept, piece.variable, slot);
    return std::shared_ptr<const Tensor>(kept, &kept->slots[piece.variable][index]);
  });
}

// Which bytes of the value a piece is about, in whatever type it travels.
ByteRange ValueBytes(const Variable& variable, const ResolvedPiece& piece) {
  const size_t widened = SizeOf(variable.dtype()) / SizeOf(piece.type);
  return {piece.offset * widened, (piece.offset + piece.size) * widened};
}

// As much of a version that is being made as is there already: null, or in the type of the piece.
std::shared_ptr<const Tensor> FindShown(const Variable& variable, GlobalStep version,
                                        const ResolvedPiece& piece) {
  const NextValue shown = variable.Shown(version, ValueBytes(variable, piece));
  if (piece.type == variable.dtype()) return shown.value;
  const bool is_there = shown.narrow != nullptr && shown.narrow->dtype() == piece.type;
  return is_there ? shown.narrow : nullptr;
}

// What of the piece is missing; nullopt: nothing. Pieces of a version that is being made can be
// there before the rest, but for those who look at the memory.
std::optional<AwaitedPart> FindMissing(const EpochState& state, const ParkedPull& pull,
                                       const ResolvedPiece& piece) {
  const VariableEntry& hosted = *state.variables[piece.variable];
  const Variable& variable = hosted.variable;
  if (variable.newest_version() >= pull.version) return std::nullopt;
  AwaitedPart part{pull.version, piece.variable};
  if (pull.by_reference || !state.config.applies_early_chunks() || hosted.early.arrived.empty())
    return part;
  const ByteRange bytes = ValueBytes(variable, piece);
  const uint64_t gap = variable.FirstMissing(pull.version, bytes);
  if (gap < bytes.end) {
    part.range = gap / DenseUpdate::kRangeBytes;
  } else if (FindShown(variable, pull.version, piece) != nullptr) {
    return std::nullopt;
  }
  return part;
}

// Goes on from the piece that was missing last.
std::optional<AwaitedPart> FindMissing(const EpochState& state, ParkedPull* pull) {
  for (; pull->num_there < pull->pieces->size(); ++pull->num_there) {
    auto missing = FindMissing(state, *pull, (*pull->pieces)[pull->num_there]);
    if (missing.has_value()) return missing;
  }
  return std::nullopt;
}

// Parts of a version of which not every variable has all: each has been found.
PullResult ReadShown(const EpochState& state, const ParkedPull& pull) {
  return Read(state, pull.version, *pull.pieces, [&](const ResolvedPiece& piece) {
    const Variable& variable = state.variables[piece.variable]->variable;
    std::shared_ptr<const Tensor> value = variable.At(pull.version);
    if (value == nullptr) value = FindShown(variable, pull.version, piece);
    LOCKSTEP_CHECK(value != nullptr);
    return value;
  });
}

// The thread that answers copies, without the lock.
Callback<PullResult> AfterCopying(std::shared_ptr<const std::vector<ResolvedPiece>> pieces,
                                  Callback<PullResult> done) {
  return [pieces = std::move(pieces),
          done = std::move(done)](absl::StatusOr<PullResult> result) mutable {
    absl::Status copied;
    if (result.ok() && !result->by_reference) copied = CopyOut(*pieces, &*result);
    done(copied.ok() ? std::move(result) : copied);
  };
}

}  // namespace

void Shard::Impl::Pull(const PullOrder& order, Callback<PullResult> done) {
  auto pieces = CheckPull(order);
  if (!pieces.ok()) return done(pieces.status());
  ParkedPull pull{order.worker, order.version,
                  std::make_shared<const std::vector<ResolvedPiece>>(*std::move(pieces)),
                  std::move(done)};
  pull.by_reference = order.accepts_references && !IsHalfWidth(order.wire_type);
  if (MayBeCopied(*pull.pieces)) pull.done = AfterCopying(pull.pieces, std::move(pull.done));
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    // Again: the view may have changed since. In the same epoch the catalog is the same.
    absl::Status admitted = AdmitWorker(order.worker);
    if (admitted.ok() && !pull.by_reference) {
      auto pin = PinUnread(order.worker.worker, *pull.pieces);
      admitted = pin.status();
      if (pin.ok()) pull.pin = *std::move(pin);
    }
    if (!admitted.ok()) {
      deferred.Answer<PullResult>(std::move(pull.done), admitted);
    } else if (!order.slot.empty() || order.averages) {
      auto result = order.slot.empty() ? ReadAverages(*state_, order.version, *pull.pieces)
                                       : ReadSlot(*state_, order.version, order.slot, *pull.pieces);
      if (result.ok()) result->pin = std::move(pull.pin);
      deferred.Answer<PullResult>(std::move(pull.done), std::move(result));
    } else {
      ParkedPulls::Attempt attempt = TryPull(*state_, &pull);
      if (auto* const result = std::get_if<PullResult>(&attempt)) {
        deferred.Answer<PullResult>(std::move(pull.done), std::move(*result));
      } else {
        ParkPull(std::move(pull), std::get<AwaitedPart>(attempt), order.ticket.get(), &deferred);
      }
    }
  }
  deferred.Run();
}

absl::StatusOr<ReaderPin> Shard::Impl::PinUnread(WorkerIndex worker,
                                                 const std::vector<ResolvedPiece>& pieces) {
  std::shared_ptr<UnreadReplies>& unread = unread_[worker];
  if (unread == nullptr) unread = std::make_shared<UnreadReplies>();
  uint64_t wanted = 0;
  for (const ResolvedPiece& piece : pieces) wanted += piece.size;
  const uint64_t bytes = unread->bytes.load(std::memory_order_relaxed);
  if (bytes == 0) return ReaderPin(unread, wanted);
  const uint64_t shard_bytes = state_->catalog.num_bytes();
  const uint64_t most =
      std::max(limits::kMinUnreadBytesOfWorker, limits::kMaxUnreadVersionsOfWorker * shard_bytes);
  if (bytes > most || wanted > most - bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", worker.value(), ": it has not read ", bytes,
                     " bytes of values that it pulled, and asks for ", wanted, " more; at most ",
                     most, " may wait. Read the replies, then pull again"));
  }
  const uint64_t most_extra =
      std::max(limits::kMinUnreadBytesOfWorker, limits::kMaxUnreadVersions * shard_bytes);
  if (state_->extra_bytes > most_extra) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", worker.value(), ": it has not read ", bytes,
                     " bytes of values that it pulled, and replies to all workers keep ",
                     state_->extra_bytes, " bytes of old versions; at most ", most_extra,
                     " may be kept. Read the replies, then pull "
                     "again"));
  }
  return ReaderPin(unread, wanted);
}

void Shard::Impl::ParkPull(ParkedPull pull, const AwaitedPart& part, PullTicket* ticket,
                           DeferredCallbacks* deferred) {
  absl::StatusOr<uint64_t> parked;
  if (phase_ == Phase::kFinished) {
    parked = absl::CancelledError("the job is over");
  } else if (ticket != nullptr && ticket->is_cancelled) {
    parked = absl::CancelledError("the caller has withdrawn the pull");
  } else {
    parked = pulls_.Park(&pull, part, deferred);
  }
  if (!parked.ok()) {
    deferred->Answer<PullResult>(std::move(pull.done), parked.status());
  } else if (ticket != nullptr) {
    ticket->pull = *parked;
  }
}

void Shard::Impl::CancelPull(PullTicket* ticket) {
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    ticket->is_cancelled = true;
    pulls_.Cancel(ticket->pull, &deferred);
  }
  deferred.Run();
}

absl::StatusOr<std::vector<ResolvedPiece>> Shard::Impl::CheckPull(const PullOrder& order) const {
  std::shared_ptr<const Catalog> catalog;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitWorker(order.worker));
    catalog = state_->shared_catalog;
  }
  return catalog->ResolvePull(order);
}

// One version for all pieces: the one asked for, or, where that is kept no longer, the newest that
// all of them have.
ParkedPulls::Attempt Shard::Impl::TryPull(const EpochState& state, ParkedPull* pull) {
  ParkedPulls::Attempt attempt = ReadVersion(state, pull);
  auto* const result = std::get_if<PullResult>(&attempt);
  if (result != nullptr && pull->by_reference && !state.shared_values.bytes.empty()) {
    ReferTo(state.shared_values, result);
  }
  if (result != nullptr && !result->by_reference) result->pin = std::move(pull->pin);
  return attempt;
}

ParkedPulls::Attempt Shard::Impl::ReadVersion(const EpochState& state, ParkedPull* waiting) {
  const ParkedPull& pull = *waiting;
  const auto variable_of = [&](const ResolvedPiece& piece) -> const Variable& {
    return state.variables[piece.variable]->variable;
  };

  const auto kept = state.snapshots.Find(pull.version);
  if (kept != nullptr) {
    return Read(state, pull.version, *pull.pieces,
                [&](const ResolvedPiece& piece) { return kept->values[piece.variable]; });
  }
  if (!state.asynchronous.has_value()) {
    if (const auto missing = FindMissing(state, waiting)) return *missing;
  }
  GlobalStep newest = variable_of(pull.pieces->front()).newest_version();
  bool is_kept = true;
  for (const ResolvedPiece& piece : *pull.pieces) {
    const Variable& variable = variable_of(piece);
    newest = std::min(newest, variable.newest_version());
    is_kept = is_kept && variable.At(pull.version) != nullptr;
  }
  if (state.asynchronous.has_value()) {
    return Read(state, newest, *pull.pieces,
                [&](const ResolvedPiece& piece) { return variable_of(piece).newest(); });
  }
  if (pull.version > newest) return ReadShown(state, pull);
  const GlobalStep version = is_kept ? pull.version : newest;
  return Read(state, version, *pull.pieces,
              [&](const ResolvedPiece& piece) { return variable_of(piece).At(version); });
}

void Shard::Impl::RetryPulls(size_t variable, DeferredCallbacks* deferred) {
  if (pulls_.size() == 0) return;
  const EpochState& state = *state_;
  const auto attempt = [&state](ParkedPull* pull) { return TryPull(state, pull); };
  AwaitedPart part{state.variables[variable]->variable.newest_version(), variable};
  pulls_.Retry(part, attempt, deferred);
  const size_t num_ranges = state.variables[variable]->early.arrived.size();
  for (part.range = 0; part.range < num_ranges; ++part.range) pulls_.Retry(part, attempt, deferred);
}

void Shard::Impl::RetryPulls(const ReadyChunk& made, DeferredCallbacks* deferred) {
  const EpochState& state = *state_;
  const GlobalStep version = state.variables[made.variable]->variable.newest_version().next();
  pulls_.Retry(
      {version, made.variable, made.range},
      [&state](ParkedPull* pull) { return TryPull(state, pull); }, deferred);
}

}  // namespace lockstep::ps
