#include "ps/service/orphan_watch.h"

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"

namespace lockstep::ps {
namespace {

// For a signal that reaches the chief later, and for its calls before those that save.
constexpr absl::Duration kForChief = absl::Seconds(1);
// As long as a chief saves (--drain).
constexpr absl::Duration kForSave = absl::Seconds(20);

}  // namespace

void OrphanWatch::Called(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  was_called_ = true;
  last_call_ = now;
}

void OrphanWatch::BeginWork(absl::Duration now) {
  Called(now);
  absl::MutexLock lock(&mutex_);
  ++works_;
}

void OrphanWatch::EndWork(absl::Duration now) {
  Called(now);
  absl::MutexLock lock(&mutex_);
  --works_;
}

bool OrphanWatch::IsOrphan(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  return was_called_ && works_ == 0 && now - last_call_ >= timeout_;
}

absl::Status OrphanWatch::Ended() const {
  return absl::UnavailableError(absl::StrCat(
      "no chief has called for ", DurationText(timeout_),
      " (--orphan_timeout). Remedy: start the cluster again, the chief with --resume"));
}

bool OrphanWatch::MayBeSaved(absl::Duration told, absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  return was_called_ && now - told < (works_ > 0 ? kForSave : kForChief);
}

}  // namespace lockstep::ps
