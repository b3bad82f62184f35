#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/stamp.h"
#include "ps/shard/pulled_rows.h"
#include "ps/shard/shard_impl.h"
#include "ps/shard/shared_table.h"

namespace lockstep::ps {
namespace {

// value_of(variable): the tensor to read, and in half the width where the piece wants that. What is
// copied out later (pulled_rows.h) gets the whole tensor.
template <typename ValueOf>
PullResult Read(const HostedState& state, GlobalStep version,
                const std::vector<ResolvedPiece>& pieces, ValueOf value_of) {
  PullResult result{version, {}};
  result.pieces.reserve(pieces.size());
  for (const ResolvedPiece& piece : pieces) {
    std::shared_ptr<const Tensor> value = value_of(piece.variable);
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

// Where the values are that others can look at. All pieces, or none, are told as places.
void Locate(const ValueMemory& memory, PullResult* result) {
  const auto place_of = [&memory](const void* address) {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(memory.bytes.data());
  };
  for (PulledPiece& piece : result->pieces) {
    const auto* const value = static_cast<const std::byte*>(piece.owner->data());
    if (place_of(value) >= memory.bytes.size()) return;  // before it, too: the difference wraps
    const auto* const stamp = reinterpret_cast<const Stamp*>(value - Stamp::kRoom);
    // One that has run ahead of the others: its reader could not tell it from a later one.
    if (stamp->version() > result->version.value()) return;
    piece.place = place_of(value) + piece.offset;
    piece.stamp = place_of(stamp);
  }
  for (PulledPiece& piece : result->pieces) {
    piece.owner.reset();
    piece.table.reset();
  }
  result->in_memory = true;
}

absl::StatusOr<PullResult> ReadAverages(const HostedState& state, GlobalStep version,
                                        const std::vector<ResolvedPiece>& pieces) {
  const auto kept = state.snapshots.Find(version);
  if (kept == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("averages of version ", version.value(),
                                                      ": it is not kept; the grant of step ",
                                                      version.value() - 1, " must ask for that"));
  }
  return Read(state, version, pieces, [&](size_t variable) {
    const auto& average = kept->averages[variable];
    return average != nullptr ? average : kept->values[variable];
  });
}

// Where among the slots of a variable the one of this name is.
std::optional<size_t> FindSlot(const HostedState& state, const Snapshot& kept, size_t variable,
                               const std::string& name) {
  const absl::Span<const SlotSpec> slots = state.variables[variable]->rule->slots();
  for (size_t i = 0; i < kept.slots[variable].size(); ++i) {
    if (slots[i].name == name) return i;
  }
  return std::nullopt;
}

absl::StatusOr<PullResult> ReadSlot(const HostedState& state, GlobalStep version,
                                    const std::string& slot,
                                    const std::vector<ResolvedPiece>& pieces) {
  const auto kept = state.snapshots.Find(version);
  if (kept == nullptr || !kept->has_slots) {
    return absl::FailedPreconditionError(absl::StrCat(
        "slot \"", slot, "\" of version ", version.value(), ": it is not kept; the grant of step ",
        version.value() - 1, " must ask for slots"));
  }
  for (const ResolvedPiece& piece : pieces) {
    if (FindSlot(state, *kept, piece.variable, slot).has_value()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(state.catalog[piece.variable]), ": it has no slot \"", slot, "\""));
  }
  return Read(state, version, pieces, [&](size_t variable) {
    const size_t index = *FindSlot(state, *kept, variable, slot);
    return std::shared_ptr<const Tensor>(kept, &kept->slots[variable][index]);
  });
}

// The thread that answers copies, without the lock.
Done<PullResult> AfterCopying(std::shared_ptr<const std::vector<ResolvedPiece>> pieces,
                              Done<PullResult> done) {
  return [pieces = std::move(pieces), done = std::move(done)](absl::StatusOr<PullResult> result) {
    absl::Status copied;
    if (result.ok() && !result->in_memory) copied = CopyOut(*pieces, &*result);
    done(copied.ok() ? std::move(result) : copied);
  };
}

}  // namespace

void Shard::Impl::Pull(const PullOrder& order, Done<PullResult> done) {
  auto pieces = CheckPull(order);
  if (!pieces.ok()) return done(pieces.status());
  ParkedPull pull{order.worker, order.version,
                  std::make_shared<const std::vector<ResolvedPiece>>(*std::move(pieces)),
                  std::move(done)};
  pull.in_memory = order.in_memory && !IsHalfWidth(order.wire_type);
  if (MayBeCopied(*pull.pieces)) pull.done = AfterCopying(pull.pieces, std::move(pull.done));
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    // Again: the view may have changed since. In the same epoch the catalog is the same.
    if (const absl::Status admitted = AdmitWorker(order.worker); !admitted.ok()) {
      outbox.Answer<PullResult>(std::move(pull.done), admitted);
    } else if (!order.slot.empty()) {
      outbox.Answer<PullResult>(std::move(pull.done),
                                ReadSlot(*state_, order.version, order.slot, *pull.pieces));
    } else if (order.averages) {
      outbox.Answer<PullResult>(std::move(pull.done),
                                ReadAverages(*state_, order.version, *pull.pieces));
    } else if (std::optional<PullResult> result = TryPull(*state_, pull)) {
      outbox.Answer<PullResult>(std::move(pull.done), *std::move(result));
    } else if (phase_ == Phase::kFinished) {
      outbox.Answer<PullResult>(std::move(pull.done), absl::CancelledError("the job is over"));
    } else {
      pulls_.Park(std::move(pull), &outbox);
    }
  }
  outbox.Run();
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
std::optional<PullResult> Shard::Impl::TryPull(const HostedState& state, const ParkedPull& pull) {
  std::optional<PullResult> result = ReadVersion(state, pull);
  if (result.has_value() && pull.in_memory && !state.shared_values.bytes.empty()) {
    Locate(state.shared_values, &*result);
  }
  return result;
}

std::optional<PullResult> Shard::Impl::ReadVersion(const HostedState& state,
                                                   const ParkedPull& pull) {
  const auto variable_of = [&](size_t variable) -> const Variable& {
    return state.variables[variable]->variable;
  };

  const auto kept = state.snapshots.Find(pull.version);
  if (kept != nullptr) {
    return Read(state, pull.version, *pull.pieces,
                [&](size_t variable) { return kept->values[variable]; });
  }
  GlobalStep newest = variable_of(pull.pieces->front().variable).newest_version();
  bool is_kept = true;
  for (const ResolvedPiece& piece : *pull.pieces) {
    const Variable& variable = variable_of(piece.variable);
    newest = std::min(newest, variable.newest_version());
    is_kept = is_kept && variable.At(pull.version) != nullptr;
  }
  if (state.asynchronous.has_value()) {
    return Read(state, newest, *pull.pieces,
                [&](size_t variable) { return variable_of(variable).newest(); });
  }
  if (pull.version > newest) return std::nullopt;
  const GlobalStep version = is_kept ? pull.version : newest;
  return Read(state, version, *pull.pieces,
              [&](size_t variable) { return variable_of(variable).At(version); });
}

void Shard::Impl::RetryPulls(Outbox* outbox) {
  const HostedState& state = *state_;
  pulls_.Retry([&state](const ParkedPull& pull) { return TryPull(state, pull); }, outbox);
}

}  // namespace lockstep::ps
