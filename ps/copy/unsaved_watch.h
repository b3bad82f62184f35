// UnsavedWatch tells whether a ps without a chief holds a model that is in no checkpoint.
#pragma once

#include <atomic>
#include <optional>

#include "absl/time/time.h"
#include "ps/copy/hosted_shards.h"
#include "ps/service/serial_thread.h"

namespace lockstep::ps {

// Not thread-safe. It reads the disk on a thread of its own, so that a disk that does not answer
// keeps nobody from a signal. Destruction waits for that.
class UnsavedWatch {
 public:
  // How often the disk is read while something is unsaved: a chief that was only stopped may still
  // commit the checkpoint.
  static constexpr absl::Duration kPeriod = absl::Seconds(5);

  enum class Answer {
    kNothing,  // all that was to be saved is
    kReading,  // not known yet
    kUnsaved,
  };

  // The shards of `shards` outlive it.
  explicit UnsavedWatch(const HostedShards& shards) : shards_(shards) {}

  // Returns at once. `now`: of one monotonic clock.
  Answer Check(absl::Duration now);

 private:
  const HostedShards shards_;
  std::atomic<bool> is_reading_ = false;
  std::optional<absl::Duration> last_read_;  // when it began
  std::optional<SerialThread> thread_;       // from the first reading on
};

}  // namespace lockstep::ps
