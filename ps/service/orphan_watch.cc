#include "ps/service/orphan_watch.h"

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"

namespace lockstep::ps {
namespace {

// For a signal that reaches the chief later, and for its calls before a save.
constexpr absl::Duration kChiefGrace = absl::Seconds(1);
// The default of the chief's --drain.
constexpr absl::Duration kSaveTimeout = absl::Seconds(20);

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
  if (works_ == 0 && signalled_.has_value() && !idle_.has_value()) idle_ = now;
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

void OrphanWatch::Signalled(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  signalled_ = now;
  if (works_ == 0) idle_ = now;
}

bool OrphanWatch::MayBeSaved(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  if (!was_called_ || now - *signalled_ >= kSaveTimeout) return false;
  return works_ > 0 || now - *idle_ < kChiefGrace;
}

}  // namespace lockstep::ps
