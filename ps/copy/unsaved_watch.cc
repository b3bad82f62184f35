#include "ps/copy/unsaved_watch.h"

namespace lockstep::ps {

UnsavedWatch::Answer UnsavedWatch::Check(absl::Duration now) {
  // Read before the shards are: what a reading that has ended found is then in them.
  const bool is_reading = is_reading_.load();
  if (!shards_.HoldUnsaved()) return Answer::kNothing;
  const bool has_read_lately = last_read_.has_value() && now - *last_read_ < kPeriod;
  // A disk that does not answer has nothing to tell.
  if (is_reading) return has_read_lately ? Answer::kReading : Answer::kUnsaved;
  if (has_read_lately) return Answer::kUnsaved;
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
