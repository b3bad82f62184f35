#include "ps/shard/parked_pulls.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {
namespace {

bool IsSame(const ParkedPull& a, const ParkedPull& b) {
  return a.worker.worker == b.worker.worker && a.worker.incarnation == b.worker.incarnation &&
         a.worker.tower == b.worker.tower && a.version == b.version && *a.pieces == *b.pieces;
}

// Hashes what IsSame compares.
struct Identity {
  const ParkedPull& pull;

  template <typename H>
  friend H AbslHashValue(H state, const Identity& of) {
    state = H::combine(std::move(state), of.pull.worker.worker, of.pull.worker.incarnation,
                       of.pull.worker.tower, of.pull.version);
    for (const ResolvedPiece& piece : *of.pull.pieces) {
      state = H::combine(std::move(state), piece.variable, static_cast<int>(piece.type),
                         piece.offset, piece.size, piece.rows);
    }
    return state;
  }
};

uint64_t BytesOf(const ParkedPull& pull) {
  uint64_t bytes =
      sizeof(ParkedPull) + pull.kept_bytes + pull.pieces->size() * sizeof(ResolvedPiece);
  for (const ResolvedPiece& piece : *pull.pieces) bytes += piece.rows.size() * sizeof(int64_t);
  return bytes;
}

}  // namespace

absl::StatusOr<uint64_t> ParkedPulls::Park(ParkedPull* pull, const AwaitedPart& part,
                                           DeferredCallbacks* deferred) {
  const uint64_t identity = absl::Hash<Identity>()({*pull});
  const auto known = entry_of_identity_.find(identity);
  if (known != entry_of_identity_.end() && IsSame(entries_[known->second].pull, *pull)) {
    const uint32_t same = known->second;
    Unlink(same);
    // Of two equal pulls the older may arrive last, delayed. The newer one's caller asks once more.
    Answer(same, absl::UnavailableError("the pull was issued again"), deferred);
  }
  const uint64_t bytes = BytesOf(*pull);
  LOCKSTEP_RETURN_IF_ERROR(CheckRoom(*pull, bytes));
  const uint32_t at = TakeEntry();
  Entry& entry = entries_[at];
  entry.pull = std::move(*pull);
  entry.part = part;
  entry.identity = identity;
  entry.bytes = bytes;
  // Of two pulls with one hash only the first is recognised when it comes again.
  entry_of_identity_.try_emplace(identity, at);
  Share& share = share_of_worker_[entry.pull.worker.worker];
  for (Share* of : {&share, &total_}) {
    ++of->pulls;
    of->bytes += bytes;
  }
  Link(at);
  return uint64_t{entry.generation} << 32 | at;
}

absl::Status ParkedPulls::CheckRoom(const ParkedPull& pull, uint64_t bytes) const {
  const auto refuse = [](absl::string_view whose, const Share& share, size_t pulls,
                         uint64_t most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        whose, share.pulls, " pulls with ", share.bytes, " bytes wait for their version; at most ",
        pulls, " with ", most_bytes, " bytes may. Retry when some have been answered"));
  };
  const auto found = share_of_worker_.find(pull.worker.worker);
  const Share share = found == share_of_worker_.end() ? Share() : found->second;
  if (share.pulls >= limits::kMaxParkedPullsOfWorker ||
      share.bytes + bytes > limits::kMaxParkedBytesOfWorker) {
    return refuse(absl::StrCat("worker ", pull.worker.worker.value(), ": "), share,
                  limits::kMaxParkedPullsOfWorker, limits::kMaxParkedBytesOfWorker);
  }
  if (total_.pulls >= limits::kMaxParkedPulls || total_.bytes + bytes > limits::kMaxParkedBytes) {
    return refuse("", total_, limits::kMaxParkedPulls, limits::kMaxParkedBytes);
  }
  return absl::OkStatus();
}

void ParkedPulls::Retry(const AwaitedPart& part, absl::FunctionRef<Attempt(ParkedPull*)> attempt,
                        DeferredCallbacks* deferred) {
  const auto chain = chains_.find(part);
  if (chain == chains_.end()) return;
  uint32_t next = chain->second.first;
  chains_.erase(chain);
  while (next != kNone) {
    const uint32_t at = next;
    next = entries_[at].next;
    Attempt outcome = attempt(&entries_[at].pull);
    if (auto* const result = std::get_if<PullResult>(&outcome)) {
      Answer(at, std::move(*result), deferred);
    } else if (auto* const error = std::get_if<absl::Status>(&outcome)) {
      Answer(at, std::move(*error), deferred);
    } else {
      entries_[at].part = std::get<AwaitedPart>(outcome);
      Link(at);
    }
  }
}

void ParkedPulls::Cancel(uint64_t number, DeferredCallbacks* deferred) {
  const auto at = static_cast<uint32_t>(number);
  if (at >= entries_.size() || !entries_[at].is_used || entries_[at].generation != number >> 32)
    return;
  Unlink(at);
  Answer(at, absl::CancelledError("the caller has withdrawn the pull"), deferred);
}

void ParkedPulls::FailIf(absl::FunctionRef<bool(const ParkedPull&)> condition,
                         const absl::Status& status, DeferredCallbacks* deferred) {
  for (uint32_t at = 0; at < entries_.size(); ++at) {
    if (!entries_[at].is_used || !condition(entries_[at].pull)) continue;
    Unlink(at);
    Answer(at, status, deferred);
  }
}

uint32_t ParkedPulls::TakeEntry() {
  uint32_t at = first_free_;
  if (at == kNone) {
    at = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    first_free_ = entries_[at].next;
  }
  entries_[at].is_used = true;
  ++entries_[at].generation;  // from 1 on: no number is 0
  return at;
}

void ParkedPulls::Link(uint32_t at) {
  Entry& entry = entries_[at];
  Chain& chain = chains_[entry.part];
  entry.previous = std::exchange(chain.last, at);
  entry.next = kNone;
  (entry.previous == kNone ? chain.first : entries_[entry.previous].next) = at;
}

void ParkedPulls::Unlink(uint32_t at) {
  const Entry& entry = entries_[at];
  const auto chain = chains_.find(entry.part);
  (entry.previous == kNone ? chain->second.first : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? chain->second.last : entries_[entry.next].previous) = entry.previous;
  if (chain->second.first == kNone) chains_.erase(chain);
}

void ParkedPulls::Answer(uint32_t at, absl::StatusOr<PullResult> result,
                         DeferredCallbacks* deferred) {
  Entry& entry = entries_[at];
  const auto known = entry_of_identity_.find(entry.identity);
  if (known != entry_of_identity_.end() && known->second == at) entry_of_identity_.erase(known);
  const auto share = share_of_worker_.find(entry.pull.worker.worker);
  for (Share* of : {&share->second, &total_}) {
    --of->pulls;
    of->bytes -= entry.bytes;
  }
  if (share->second.pulls == 0) share_of_worker_.erase(share);
  deferred->Answer<PullResult>(std::move(entry.pull.done), std::move(result));
  entry.pull = {};
  entry.is_used = false;
  entry.next = std::exchange(first_free_, at);
}

}  // namespace lockstep::ps
