#include "ps/shard/value_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/job_over.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/seq_lock.h"
#include "ps/shard/copied_values.h"
#include "ps/shard/kept_values.h"
#include "ps/shard/read_values.h"

namespace lockstep::ps {
namespace {

// Whether `wanted` bytes may wait beside `unread` ones: any number of them, if there are none.
bool FitsUnread(uint64_t wanted, uint64_t unread, uint64_t most) {
  return unread == 0 || (unread <= most && wanted <= most - unread);
}

absl::Status TooMuchUnread(const WorkerIdentity& worker, absl::string_view what, uint64_t wanted,
                           uint64_t unread, uint64_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat("worker ", worker.worker.value(), ": it has not read ", unread, " bytes of ",
                   what, " that it pulled, and asks for ", wanted, " more; at most ", most,
                   " may wait. Read the replies, then pull again"));
}

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

}  // namespace

void ValueReader::Pull(const PullArguments& arguments, std::vector<ResolvedPiece> pieces,
                       bool is_over, Callback<PullResult> done, DeferredCallbacks* deferred) {
  ParkedPull pull{arguments.worker, arguments.version,
                  std::make_shared<const std::vector<ResolvedPiece>>(std::move(pieces)),
                  std::move(done), arguments.kept_bytes};
  pull.by_reference = arguments.accepts_references && !IsHalfWidth(arguments.wire_type);
  if (!pull.by_reference) {
    auto pin = PinUnread(arguments.worker, *pull.pieces);
    if (!pin.ok()) return deferred->Answer<PullResult>(std::move(pull.done), pin.status());
    pull.pin = *std::move(pin);
  }
  if (!arguments.slot.empty() || arguments.averages) {
    auto result = ReadKept(variables_, snapshots_, to_store_, arguments, *pull.pieces);
    absl::Status status = result.status();
    if (status.ok()) status = Finish(&pull, /*is_value=*/false, &*result);
    if (!status.ok()) result = std::move(status);
    return deferred->Answer<PullResult>(std::move(pull.done), std::move(result));
  }
  ParkedPulls::Attempt attempt = TryPull(&pull);
  if (auto* const result = std::get_if<PullResult>(&attempt)) {
    return deferred->Answer<PullResult>(std::move(pull.done), std::move(*result));
  }
  if (auto* const error = std::get_if<absl::Status>(&attempt)) {
    return deferred->Answer<PullResult>(std::move(pull.done), std::move(*error));
  }
  const absl::Status parked =
      Park(&pull, std::get<AwaitedPart>(attempt), is_over, arguments.ticket.get(), deferred);
  if (!parked.ok()) deferred->Answer<PullResult>(std::move(pull.done), parked);
}

ValueReader::Unread& ValueReader::UnreadOf(const WorkerIdentity& worker) {
  return unread_
      .try_emplace({worker.worker, worker.incarnation, worker.tower}, variables_.entries.size())
      .first->second;
}

absl::StatusOr<std::shared_ptr<const void>> ValueReader::PinUnread(
    const WorkerIdentity& worker, const std::vector<ResolvedPiece>& pieces) {
  std::shared_ptr<std::atomic<uint64_t>>& unread = readers_.unread[worker.worker];
  if (unread == nullptr) unread = std::make_shared<std::atomic<uint64_t>>(0);
  uint64_t wanted = 0;
  uint64_t rows = 0;
  for (const ResolvedPiece& piece : pieces) {
    wanted += piece.size;
    if (!piece.rows.empty()) rows += piece.size;
  }
  const uint64_t bytes = unread->load(std::memory_order_relaxed);
  const uint64_t shard_bytes = variables_.catalog.num_bytes();
  const uint64_t most =
      std::max(limits::kMinUnreadBytesOfWorker, limits::kMaxUnreadVersionsOfWorker * shard_bytes);
  if (!FitsUnread(wanted, bytes, most)) return TooMuchUnread(worker, "values", wanted, bytes, most);
  if (rows == 0) return CountBytes(unread, wanted);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const void> of_rows, PinRows(worker, rows));
  return std::make_shared<const std::array<std::shared_ptr<const void>, 2>>(
      std::array{CountBytes(unread, wanted), std::move(of_rows)});
}

absl::StatusOr<std::shared_ptr<const void>> ValueReader::PinRows(const WorkerIdentity& worker,
                                                                 uint64_t wanted) {
  const Unread& unread = UnreadOf(worker);
  const uint64_t bytes = unread.rows->load(std::memory_order_relaxed);
  if (!FitsUnread(wanted, bytes, limits::kMaxUnreadCopyBytes)) {
    const uint64_t most = MostUnreadRowBytes();
    if (!FitsUnread(wanted, bytes, most)) return TooMuchUnread(worker, "rows", wanted, bytes, most);
  }
  return CountBytes(unread.rows, wanted);
}

// Rows that are unread take the memory of the gradient that the worker pushes when it has read
// them, and of the rows as they were before.
uint64_t ValueReader::MostUnreadRowBytes() const {
  uint64_t most = limits::kMaxUnreadCopyBytes;
  for (size_t i = 0; i < variables_.catalog.size(); ++i) {
    const CatalogEntry& entry = variables_.catalog[i];
    if (!entry.is_sparse) continue;
    const uint64_t gradient = gradients_.GradientBytes(i);
    most += gradient > 0 ? limits::kMaxUnreadGradientsOfRows * gradient
                         : limits::kMaxUnreadVersionsOfWorker * entry.num_bytes;
  }
  return most;
}

absl::Status ValueReader::CheckHasRead(const WorkerIdentity& worker) const {
  const auto found = unread_.find({worker.worker, worker.incarnation, worker.tower});
  if (found == unread_.end()) return absl::OkStatus();
  const Unread& unread = found->second;
  constexpr uint64_t kMost = limits::kMaxUnreadCopyBytes;
  if (unread.to_train.kept_bytes() + unread.to_evaluate.kept_bytes() <= kMost) {
    return absl::OkStatus();
  }
  const auto is_dropped = [this](size_t variable, GlobalStep version) {
    const Variable& of = variables_.entries[variable]->variable;
    return version < of.newest_version() && of.At(version) == nullptr &&
           snapshots_.Find(version) == nullptr;
  };
  const uint64_t bytes =
      unread.to_train.SumKept(is_dropped) + unread.to_evaluate.SumKept(is_dropped);
  if (bytes <= kMost) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("worker ", worker.worker.value(), ": replies that it has not read keep ", bytes,
                   " bytes of earlier versions; at most ", kMost,
                   " may be kept beside a gradient. Read the replies, then push again"));
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
  if (pull->by_reference && !variables_.shared_values.bytes.empty()) {
    ReferTo(variables_.shared_values, result);
  }
  absl::Status status = Finish(pull, /*is_value=*/true, result);
  if (!status.ok()) return status;
  return attempt;
}

absl::Status ValueReader::Finish(ParkedPull* pull, bool is_value, PullResult* result) {
  if (!result->by_reference) {
    LOCKSTEP_RETURN_IF_ERROR(KeepUnread(*pull, is_value, result));
    result->pin = std::move(pull->pin);
    for (size_t i = 0; i < result->pieces.size(); ++i) {
      if (!IsCopied((*pull->pieces)[i], result->pieces[i])) continue;
      pull->done = AfterCopying(pull->pieces, std::move(pull->done));
      break;
    }
  }
  ++readers_.num_answered;
  return absl::OkStatus();
}

absl::Status ValueReader::KeepUnread(const ParkedPull& pull, bool is_value, PullResult* result) {
  const WorkerIdentity& worker = pull.worker;
  Unread& of_worker = UnreadOf(worker);
  const bool is_kept = snapshots_.Find(result->version) != nullptr;
  UnreadVersions& unread = is_kept || !is_value ? of_worker.to_evaluate : of_worker.to_train;
  const auto keep = [&](size_t variable, const std::shared_ptr<const Tensor>& value) {
    std::shared_ptr<const Tensor> kept = unread.Keep(variable, result->version, value);
    // The version that the worker trains with may be kept, too.
    if (kept != nullptr || !is_kept || !is_value) return kept;
    return of_worker.to_train.Keep(variable, result->version, value);
  };
  uint64_t copied = 0;       // of versions that the reply might keep
  uint64_t only_copied = 0;  // of what is copied in every reply
  for (size_t i = 0; i < result->pieces.size(); ++i) {
    const ResolvedPiece& piece = (*pull.pieces)[i];
    PulledPiece& pulled = result->pieces[i];
    if (!piece.rows.empty()) continue;  // PinRows has counted them
    const Variable& variable = variables_.entries[piece.variable]->variable;
    if (IsCopied(piece, pulled)) {
      only_copied += piece.size;
    } else if (is_kept && variable.newest_version() > result->version.next()) {
      // For an evaluation, beside the version that the worker trains with.
      pulled.is_to_copy = true;
      only_copied += piece.size;
    } else if (auto kept = keep(piece.variable, pulled.owner)) {
      pulled.owner = std::move(kept);
    } else {
      pulled.is_to_copy = true;
      copied += piece.size;
    }
  }
  const uint64_t bytes = copied + only_copied;
  if (bytes == 0) return absl::OkStatus();
  result->copy_pin = copied == 0 ? unread.PinOnlyCopy(bytes) : unread.PinCopy(bytes);
  if (result->copy_pin != nullptr) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "worker ", worker.worker.value(), ": replies that it has not read keep other versions, and ",
      unread.copied_bytes(), " bytes of copies beside them; it asks for ", bytes, " more; at most ",
      limits::kMaxUnreadCopyBytes, " may wait. Read the replies, then pull again"));
}

void ValueReader::ForgetUnread(absl::FunctionRef<bool(WorkerIndex, Incarnation)> has_left) {
  absl::erase_if(unread_,
                 [&](const auto& of) { return has_left(of.first.worker, of.first.incarnation); });
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
