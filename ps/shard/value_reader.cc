#include "ps/shard/value_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/job_over.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"
#include "common/tensor/seq_lock.h"
#include "ps/shard/kept_values.h"
#include "ps/shard/read_values.h"

namespace lockstep::ps {
namespace {

// Gives all pieces by reference if each of them is in the lent memory. Otherwise none.
void ReferTo(const LentMemory& memory, PullResult* result) {
  for (PulledPiece& piece : result->pieces) {
    if (piece.snapshot != nullptr) return;
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

// The bytes of the value that a piece names. It may travel in a narrower type.
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
std::optional<AwaitedPart> FindMissing(const EpochVariables& variables, const ParkedPull& pull,
                                       const ResolvedPiece& piece) {
  const VariableEntry& hosted = *variables.entries[piece.variable];
  const Variable& variable = hosted.variable;
  if (variable.newest_version() >= pull.version) return std::nullopt;
  AwaitedPart part{pull.version, piece.variable};
  if (pull.by_reference || hosted.num_chunks == 0) return part;
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
std::optional<AwaitedPart> FindMissing(const EpochVariables& variables, ParkedPull* pull) {
  for (; pull->num_there < pull->pieces->size(); ++pull->num_there) {
    auto missing = FindMissing(variables, *pull, (*pull->pieces)[pull->num_there]);
    if (missing.has_value()) return missing;
  }
  return std::nullopt;
}

// Parts of a version of which not every variable has all: each has been found.
PullResult ReadShown(const EpochVariables& variables, const ParkedPull& pull) {
  return ReadValues(variables, pull.version, *pull.pieces, [&](const ResolvedPiece& piece) {
    const Variable& variable = variables.entries[piece.variable]->variable;
    std::shared_ptr<const Tensor> value = variable.At(pull.version);
    if (value == nullptr) value = FindShown(variable, pull.version, piece);
    LOCKSTEP_CHECK(value != nullptr);
    return KeptTensor{std::move(value)};
  });
}

bool IsCopied(const ResolvedPiece& piece, const PulledPiece& pulled) {
  return !piece.rows.empty() || pulled.table != nullptr || pulled.snapshot != nullptr;
}

// As elements of a type of half the width, some at a time. The piece may begin and end inside one.
void CopyNarrowed(const ResolvedPiece& piece, const TensorSnapshot& snapshot, std::byte* to) {
  constexpr size_t kElementsAtATime = 4096;
  std::array<float, kElementsAtATime> wide;
  std::array<uint16_t, kElementsAtATime> narrow;
  const uint64_t end = piece.offset + piece.size;
  size_t count = 0;
  for (uint64_t first = piece.offset / sizeof(uint16_t); first * sizeof(uint16_t) < end;
       first += count) {
    const uint64_t begin_byte = first * sizeof(uint16_t);
    count = std::min<uint64_t>(kElementsAtATime, (end - begin_byte + 1) / sizeof(uint16_t));
    const std::span<float> elements = std::span(wide).first(count);
    snapshot.CopyBytes(first * sizeof(float), std::as_writable_bytes(elements));
    Narrow(elements, piece.type, narrow.data());
    const uint64_t from = std::max(piece.offset, begin_byte);
    const uint64_t until = std::min(end, begin_byte + count * sizeof(uint16_t));
    std::memcpy(to + (from - piece.offset),
                reinterpret_cast<const std::byte*>(narrow.data()) + (from - begin_byte),
                until - from);
  }
}

void CopySnapshot(const ResolvedPiece& piece, const TensorSnapshot& snapshot,
                  std::span<std::byte> to) {
  if (!piece.rows.empty()) {
    snapshot.CopyRows(piece.rows, piece.size / piece.rows.size(), to.data());
  } else if (piece.type == snapshot.dtype()) {
    snapshot.CopyBytes(piece.offset, to);
  } else {
    CopyNarrowed(piece, snapshot, to.data());
  }
}

bool CopyPiece(const ResolvedPiece& piece, const PulledPiece& pulled, GlobalStep version,
               std::span<std::byte> to) {
  if (pulled.snapshot != nullptr) {
    CopySnapshot(piece, *pulled.snapshot, to);
    return true;
  }
  if (pulled.table == nullptr) {
    GatherRows(pulled.bytes.data(), piece.size / piece.rows.size(), piece.rows, to.data());
    return true;
  }
  absl::ReaderMutexLock lock(&pulled.table->mutex);
  const Table& table = *pulled.table->table;
  if (piece.rows.empty()) return table.CopyBytes(version, piece.offset, to);
  return table.CopyRows(version, piece.rows, to.data());
}

bool MayBeCopied(const PullArguments& arguments, absl::Span<const ResolvedPiece> pieces) {
  return arguments.averages || !arguments.slot.empty() ||
         std::ranges::any_of(pieces, &ResolvedPiece::is_sparse);
}

// `result` has the whole value for each piece that names rows, or is of a table or a snapshot.
// Replaces it by a copy of what the piece names, so that a reply keeps no more than that, and the
// table may change while it travels. UNAVAILABLE: the rows of that version are no longer kept;
// RESOURCE_EXHAUSTED: there is no memory.
absl::Status CopyOut(absl::Span<const ResolvedPiece> pieces, PullResult* result) {
  int64_t total = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (IsCopied(pieces[i], result->pieces[i])) total += static_cast<int64_t>(pieces[i].size);
  }
  std::optional<Tensor> made = Tensor::TryMake(DType::kUInt8, Shape({total}));
  if (!made.has_value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for ", total, " bytes of pulled values. Pull again"));
  }
  const auto copies = std::make_shared<Tensor>(*std::move(made));
  std::span<std::byte> left = copies->view().bytes();
  for (size_t i = 0; i < pieces.size(); ++i) {
    PulledPiece& pulled = result->pieces[i];
    if (!IsCopied(pieces[i], pulled)) continue;
    const std::span<std::byte> copy = left.first(pieces[i].size);
    if (!CopyPiece(pieces[i], pulled, result->version, copy)) {
      return absl::UnavailableError(
          absl::StrCat("variable ", pulled.variable.value(), ": version ", result->version.value(),
                       " was changed before it could be copied. Pull again"));
    }
    pulled.bytes = copy;
    pulled.owner = copies;
    pulled.table = nullptr;
    pulled.snapshot = nullptr;
    left = left.subspan(copy.size());
  }
  return absl::OkStatus();
}

std::shared_ptr<const void> Pin(std::shared_ptr<std::atomic<uint64_t>> unread, uint64_t bytes) {
  unread->fetch_add(bytes, std::memory_order_relaxed);
  std::atomic<uint64_t>* const count = unread.get();
  return std::shared_ptr<const void>(count, [unread = std::move(unread), bytes](const void*) {
    unread->fetch_sub(bytes, std::memory_order_relaxed);
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

void ValueReader::Pull(const PullArguments& arguments, std::vector<ResolvedPiece> pieces,
                       bool is_over, Callback<PullResult> done, DeferredCallbacks* deferred) {
  ParkedPull pull{arguments.worker, arguments.version,
                  std::make_shared<const std::vector<ResolvedPiece>>(std::move(pieces)),
                  std::move(done), arguments.kept_bytes};
  pull.by_reference = arguments.accepts_references && !IsHalfWidth(arguments.wire_type);
  if (MayBeCopied(arguments, *pull.pieces))
    pull.done = AfterCopying(pull.pieces, std::move(pull.done));
  if (!pull.by_reference) {
    auto pin = PinUnread(arguments.worker.worker, *pull.pieces);
    if (!pin.ok()) return deferred->Answer<PullResult>(std::move(pull.done), pin.status());
    pull.pin = *std::move(pin);
  }
  if (!arguments.slot.empty() || arguments.averages) {
    auto result = ReadKept(variables_, snapshots_, to_store_, arguments, *pull.pieces);
    if (result.ok()) {
      result->pin = std::move(pull.pin);
      ++readers_.num_answered;
    }
    return deferred->Answer<PullResult>(std::move(pull.done), std::move(result));
  }
  ParkedPulls::Attempt attempt = TryPull(&pull);
  if (auto* const result = std::get_if<PullResult>(&attempt)) {
    return deferred->Answer<PullResult>(std::move(pull.done), std::move(*result));
  }
  const absl::Status parked =
      Park(&pull, std::get<AwaitedPart>(attempt), is_over, arguments.ticket.get(), deferred);
  if (!parked.ok()) deferred->Answer<PullResult>(std::move(pull.done), parked);
}

absl::StatusOr<std::shared_ptr<const void>> ValueReader::PinUnread(
    WorkerIndex worker, const std::vector<ResolvedPiece>& pieces) {
  std::shared_ptr<std::atomic<uint64_t>>& unread = readers_.unread[worker];
  if (unread == nullptr) unread = std::make_shared<std::atomic<uint64_t>>(0);
  uint64_t wanted = 0;
  for (const ResolvedPiece& piece : pieces) wanted += piece.size;
  const uint64_t bytes = unread->load(std::memory_order_relaxed);
  if (bytes == 0) return Pin(unread, wanted);
  const uint64_t shard_bytes = variables_.catalog.num_bytes();
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
  if (extra_bytes_ > most_extra) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", worker.value(), ": it has not read ", bytes,
                     " bytes of values that it pulled, and replies to all workers keep ",
                     extra_bytes_, " bytes of old versions; at most ", most_extra,
                     " may be kept. Read the replies, then pull again"));
  }
  return Pin(unread, wanted);
}

absl::Status ValueReader::Park(ParkedPull* pull, const AwaitedPart& part, bool is_over,
                               PullTicket* ticket, DeferredCallbacks* deferred) {
  if (is_over) return JobOverError();
  if (ticket != nullptr && ticket->is_cancelled) {
    return absl::CancelledError("the caller has withdrawn the pull");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t number, readers_.parked.Park(pull, part, deferred));
  if (ticket != nullptr) ticket->pull = number;
  return absl::OkStatus();
}

// One version for all pieces: the one asked for, or, where that is kept no longer, the newest that
// all of them have.
ParkedPulls::Attempt ValueReader::TryPull(ParkedPull* pull) {
  ParkedPulls::Attempt attempt = ReadVersion(pull);
  auto* const result = std::get_if<PullResult>(&attempt);
  if (result == nullptr) return attempt;
  ++readers_.num_answered;
  if (pull->by_reference && !variables_.shared_values.bytes.empty()) {
    ReferTo(variables_.shared_values, result);
  }
  if (!result->by_reference) result->pin = std::move(pull->pin);
  return attempt;
}

ParkedPulls::Attempt ValueReader::ReadVersion(ParkedPull* waiting) const {
  const ParkedPull& pull = *waiting;
  const bool is_asynchronous = variables_.config.is_asynchronous();
  const auto variable_of = [&](const ResolvedPiece& piece) -> const Variable& {
    return variables_.entries[piece.variable]->variable;
  };

  const auto kept = snapshots_.Find(pull.version);
  if (kept != nullptr) {
    for (const ResolvedPiece& piece : *pull.pieces) {
      if (kept->values[piece.variable].is_there()) continue;
      return AwaitedPart{pull.version, piece.variable};
    }
    return ReadValues(variables_, pull.version, *pull.pieces,
                      [&](const ResolvedPiece& piece) { return kept->values[piece.variable]; });
  }
  if (!is_asynchronous) {
    if (const auto missing = FindMissing(variables_, waiting)) return *missing;
  }
  GlobalStep newest = variable_of(pull.pieces->front()).newest_version();
  bool is_kept = true;
  for (const ResolvedPiece& piece : *pull.pieces) {
    const Variable& variable = variable_of(piece);
    newest = std::min(newest, variable.newest_version());
    is_kept = is_kept && variable.At(pull.version) != nullptr;
  }
  if (is_asynchronous) {
    return ReadValues(variables_, newest, *pull.pieces, [&](const ResolvedPiece& piece) {
      return KeptTensor{variable_of(piece).newest()};
    });
  }
  if (pull.version > newest) return ReadShown(variables_, pull);
  const GlobalStep version = is_kept ? pull.version : newest;
  return ReadValues(variables_, version, *pull.pieces, [&](const ResolvedPiece& piece) {
    return KeptTensor{variable_of(piece).At(version)};
  });
}

void ValueReader::OnPublished(size_t variable) {
  VariableEntry& entry = *variables_.entries[variable];
  const uint64_t before = std::exchange(entry.extra_bytes, entry.variable.ExtraBytes());
  extra_bytes_ += entry.extra_bytes - before;
}

void ValueReader::RetryPulls(size_t variable, DeferredCallbacks* deferred) {
  if (readers_.parked.size() == 0) return;
  const VariableEntry& entry = *variables_.entries[variable];
  const auto attempt = [this](ParkedPull* pull) { return TryPull(pull); };
  AwaitedPart part{entry.variable.newest_version(), variable};
  readers_.parked.Retry(part, attempt, deferred);
  for (part.range = 0; part.range < entry.num_chunks; ++part.range) {
    readers_.parked.Retry(part, attempt, deferred);
  }
}

void ValueReader::RetryPulls(size_t variable, size_t chunk, DeferredCallbacks* deferred) {
  const GlobalStep version = variables_.entries[variable]->variable.newest_version().next();
  readers_.parked.Retry(
      {version, variable, chunk}, [this](ParkedPull* pull) { return TryPull(pull); }, deferred);
}

}  // namespace lockstep::ps
