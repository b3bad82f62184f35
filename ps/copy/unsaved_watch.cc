#include "ps/copy/unsaved_watch.h"

namespace lockstep::ps {

UnsavedWatch::Answer UnsavedWatch::Check(absl::Duration now) {
  // First: what a reading has found is then seen below.
  const bool is_reading = is_reading_.load();
  if (!shards_.HoldUnsaved()) return Answer::kNothing;
  if (is_reading) return Answer::kReading;
  if (last_read_.has_value() && now - *last_read_ < kPeriod) return Answer::kUnsaved;
  last_read_ = now;
  is_reading_.store(true);
  if (!thread_.has_value()) thread_.emplace();
  const bool is_queued = thread_->TryDo([this] {
    shards_.LookForCheckpoints();
    is_reading_.store(false);
  });
  if (!is_queued) is_reading_.store(false);
  return Answer::kReading;
}

}  // namespace lockstep::ps
