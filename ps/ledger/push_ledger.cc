#include "ps/ledger/push_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {
namespace {

// A push far ahead would make every push between stale. Of whole steps a shard may hear nothing: of
// those whose losses train nothing here, and of those in which no gradient of this worker counted,
// a copy.
absl::Status CheckGap(const PushKey& key, GlobalStep local_step, PushSeq newest,
                      GlobalStep newest_step) {
  const bool is_later = local_step > newest_step;
  const uint64_t later = static_cast<uint64_t>(local_step.value()) - newest_step.value();
  const uint64_t steps = is_later ? later + 1 : 1;
  const uint64_t left = limits::kMaxPushSeq - newest.value();
  const uint64_t most = newest == PushSeq() || steps > left / limits::kMaxPushSeqGap
                            ? limits::kMaxPushSeq
                            : newest.value() + steps * limits::kMaxPushSeqGap;
  if (key.push_seq.value() <= most) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "push_seq of worker ", key.worker.value(), ": expected at most ", most, " at step ",
      local_step.value(), " after ", newest.value(), " at step ", newest_step.value(), ", got ",
      key.push_seq.value(), ". Remedy: count pushes one by one"));
}

}  // namespace

absl::StatusOr<PushLedger::Age> PushLedger::Open(const PushKey& key, GlobalStep local_step) {
  const auto other = others_.find(key.pusher());
  if (other != others_.end() && other->second.incarnation == key.incarnation) {
    std::swap(pushes_[key.pusher()], other->second);
  }
  const auto known = pushes_.find(key.pusher());
  const bool is_known = known != pushes_.end() && known->second.incarnation == key.incarnation;
  const PushSeq newest = is_known ? known->second.newest : PushSeq();
  if (key.push_seq > newest) {
    const GlobalStep newest_step =
        is_known ? known->second.entries[newest.value() % kWindow].local_step : GlobalStep();
    LOCKSTEP_RETURN_IF_ERROR(CheckGap(key, local_step, newest, newest_step));
  }
  Pushes& pushes = pushes_[key.pusher()];
  if (!is_known) {
    pushes = Pushes{};
    pushes.incarnation = key.incarnation;
  }
  if (key.push_seq > pushes.newest) {
    Entry& entry = pushes.entries[key.push_seq.value() % kWindow];
    entry.push_seq = key.push_seq;
    entry.local_step = local_step;
    entry.statuses.assign(num_variables_, PushStatus::kPending);
    pushes.newest = key.push_seq;
    return Age::kNew;
  }
  const Entry* entry = EntryOf(key);
  if (entry != nullptr && entry->local_step != local_step) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push ", key.push_seq.value(), " of worker ", key.worker.value(), " had local_step ",
        entry->local_step.value(), " before and has ", local_step.value(), " now"));
  }
  return key.push_seq == pushes.newest ? Age::kCurrent : Age::kOver;
}

absl::StatusOr<PushLedger::Age> PushLedger::OpenCounted(const PushKey& key, GlobalStep local_step) {
  const auto known = pushes_.find(key.pusher());
  if (known != pushes_.end() && known->second.incarnation != key.incarnation) {
    Pushes& other = others_[key.pusher()];
    if (other.incarnation != key.incarnation) other = known->second;
  }
  return Open(key, local_step);
}

PushStatus PushLedger::Find(const PushKey& key, size_t variable) const {
  const Entry* entry = EntryOf(key);
  if (entry == nullptr) return PushStatus::kStale;
  const PushStatus status = entry->statuses[variable];
  const bool is_over = key.push_seq != pushes_.at(key.pusher()).newest;
  return status == PushStatus::kPending && is_over ? PushStatus::kStale : status;
}

void PushLedger::Record(const PushKey& key, size_t variable, PushStatus status) {
  const auto found = pushes_.find(key.pusher());
  if (found == pushes_.end() || found->second.incarnation != key.incarnation) return;
  Entry& entry = found->second.entries[key.push_seq.value() % kWindow];
  if (entry.push_seq != key.push_seq) return;
  if (entry.statuses[variable] == PushStatus::kPending) entry.statuses[variable] = status;
}

void PushLedger::Forget(const Pusher& pusher, size_t variable, GlobalStep since) {
  const auto found = pushes_.find(pusher);
  if (found == pushes_.end()) return;
  for (Entry& entry : found->second.entries) {
    if (entry.push_seq == PushSeq() || entry.local_step < since) continue;
    entry.statuses[variable] = PushStatus::kPending;
  }
}

std::optional<GlobalStep> PushLedger::NewestLocalStep(WorkerIndex worker,
                                                      Incarnation incarnation) const {
  const auto found = pushes_.find({worker});
  if (found == pushes_.end() || found->second.incarnation != incarnation) return std::nullopt;
  return found->second.entries[found->second.newest.value() % kWindow].local_step;
}

const PushLedger::Entry* PushLedger::EntryOf(const PushKey& key) const {
  const auto found = pushes_.find(key.pusher());
  if (found == pushes_.end() || found->second.incarnation != key.incarnation) return nullptr;
  const Entry& entry = found->second.entries[key.push_seq.value() % kWindow];
  return entry.push_seq == key.push_seq ? &entry : nullptr;
}

}  // namespace lockstep::ps
