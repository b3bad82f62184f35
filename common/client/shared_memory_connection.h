// The memory that a worker has exchanged with one ps: when to do it, and what came of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/client/ps_client.h"
#include "common/shm/segment.h"
#include "proto/ps.pb.h"

namespace lockstep {

// Thread-safe.
class SharedMemoryConnection {
 public:
  explicit SharedMemoryConnection(SharedMemoryOptions options);
  // Waits for an exchange that is under way, at most two seconds.
  ~SharedMemoryConnection();

  // What to send to the ps, when it has not been asked yet in this worker's name; then Complete
  // gets the answer.
  std::optional<AttachMemoryRequest> Begin(const WorkerIdentity& worker);
  // Exchanges memory where the ps lets us: on a thread of its own, since a ps that has just hung
  // lets it wait.
  void Complete(const absl::StatusOr<AttachMemoryReply>& reply);
  // Tells whether memory was exchanged, as soon as that is known: after Begin. UNAVAILABLE when the
  // ps could not be asked.
  void Await(std::function<void(absl::StatusOr<bool>)> done);
  // Whether it ever was.
  bool was_attached() const;
  // The ps has lost it: the next Begin asks again.
  void Lose();

  // Where in the worker's memory the bytes are; nullopt: the ps does not have them.
  std::optional<uint64_t> PlaceOf(std::span<const std::byte> bytes) const;
  // The ps's values; null: not attached.
  std::shared_ptr<const shm::Segment> values() const;

 private:
  enum class State { kIdle, kAsked, kAttached, kRefused };

  using Waiting = std::vector<std::function<void(absl::StatusOr<bool>)>>;

  void Exchange(const AttachMemoryReply& place);
  void Settle(const absl::Status& status, std::shared_ptr<const shm::Segment> values);
  static void Answer(const Waiting& waiting, const absl::StatusOr<bool>& answer);

  const SharedMemoryOptions options_;
  const std::shared_ptr<const shm::Segment> gradients_;  // null: there are none
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  bool has_told_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_attached_ ABSL_GUARDED_BY(mutex_) = false;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);  // for the answer to what was asked
  std::shared_ptr<const shm::Segment> values_ ABSL_GUARDED_BY(mutex_);
  std::thread exchange_;  // of the last Complete; those follow one another
};

}  // namespace lockstep
