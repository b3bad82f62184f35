#include "ps/shard/parked_pulls.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::ps {
namespace {

bool IsSame(const ParkedPull& a, const ParkedPull& b) {
  return a.worker.worker == b.worker.worker && a.worker.incarnation == b.worker.incarnation &&
         a.version == b.version && *a.pieces == *b.pieces;
}

}  // namespace

void ParkedPulls::Park(ParkedPull pull, Outbox* outbox) {
  const auto same = std::find_if(pulls_.begin(), pulls_.end(),
                                 [&](const ParkedPull& parked) { return IsSame(parked, pull); });
  if (same == pulls_.end()) {
    pulls_.push_back(std::move(pull));
    return;
  }
  std::swap(same->done, pull.done);
  same->in_memory = pull.in_memory;
  outbox->Answer<PullResult>(std::move(pull.done),
                             absl::CancelledError("the pull was issued again"));
}

void ParkedPulls::Retry(absl::FunctionRef<std::optional<PullResult>(const ParkedPull&)> answer,
                        Outbox* outbox) {
  auto waiting = pulls_.begin();
  for (auto pull = pulls_.begin(); pull != pulls_.end(); ++pull) {
    if (std::optional<PullResult> result = answer(*pull)) {
      outbox->Answer<PullResult>(std::move(pull->done), *std::move(result));
      continue;
    }
    if (waiting != pull) *waiting = std::move(*pull);
    ++waiting;
  }
  pulls_.erase(waiting, pulls_.end());
}

void ParkedPulls::FailIf(absl::FunctionRef<bool(const ParkedPull&)> condition,
                         const absl::Status& status, Outbox* outbox) {
  const auto failed = std::stable_partition(
      pulls_.begin(), pulls_.end(), [&](const ParkedPull& pull) { return !condition(pull); });
  for (auto pull = failed; pull != pulls_.end(); ++pull) {
    outbox->Answer<PullResult>(std::move(pull->done), status);
  }
  pulls_.erase(failed, pulls_.end());
}

}  // namespace lockstep::ps
