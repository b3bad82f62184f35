// The memory that a worker has exchanged with one ps: when to do it, and what came of it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/shm/segment.h"
#include "common/transport/tensor_transport.h"
#include "proto/ps.pb.h"

namespace lockstep {

// Thread-safe.
class SharedMemoryConnection {
 public:
  using Memory = std::shared_ptr<const shm::Segment>;
  // Gets what was mapped, returns it as it is to be held: a device may want to know of it first.
  using Adopt = std::function<Memory(Memory)>;

  // `gradients` is the worker's memory. Null: it only wants to see the ps's. `opened` and `adopt`
  // may be null; `adopt` is called by the thread of an exchange, which waits for the ps for
  // `patience`.
  explicit SharedMemoryConnection(Memory gradients, StatusCallback opened = nullptr,
                                  Adopt adopt = nullptr,
                                  absl::Duration patience = absl::Seconds(2));
  // Waits for an exchange that is under way.
  ~SharedMemoryConnection();

  // What to send to the ps, when it has not been asked yet in this worker's name; then Complete
  // gets the answer.
  std::optional<AttachMemoryRequest> Begin(const WorkerIdentity& worker);
  // Exchanges memory where the ps lets us: on a thread of its own, since a ps that has just hung
  // lets it wait.
  void Complete(const absl::StatusOr<AttachMemoryReply>& reply);
  // Tells whether memory was ever exchanged, as soon as that is known: after Begin. UNAVAILABLE
  // when the ps could not be asked, or did not answer in time: the next Begin asks again, a few
  // times.
  void Await(Callback<TransportInfo> done);
  // The ps has lost the memory: the next Begin asks again.
  void MarkLost();

  // Whether memory was ever exchanged. It stays true when the memory is lost.
  bool HasExchanged() const;
  // Where in the worker's memory the bytes are. nullopt: the ps does not have them.
  std::optional<uint64_t> PlaceOf(std::span<const std::byte> bytes) const;
  // The ps's values. Null: not attached.
  Memory values() const;

 private:
  enum class State { kIdle, kAsked, kAttached, kRefused };

  using Waiting = std::vector<Callback<TransportInfo>>;

  void Exchange(const AttachMemoryReply& offer);
  void OnExchanged(const absl::Status& status, Memory values);
  // For the next Begin to ask again.
  void PutOff(const absl::Status& why);
  static void Answer(Waiting waiting, const absl::StatusOr<TransportInfo>& answer);

  const Memory gradients_;
  const Adopt adopt_;
  const absl::Duration patience_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  std::atomic<bool> is_attached_ = false;  // state_ is kAttached: asked for each gradient
  // OK from the first exchange on, also once the memory is lost.
  absl::Status references_ ABSL_GUARDED_BY(mutex_);
  StatusCallback opened_ ABSL_GUARDED_BY(mutex_);  // null once it was told
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);        // for the answer to what was asked
  Memory values_ ABSL_GUARDED_BY(mutex_);
  std::thread exchange_;  // of the last Complete; those follow one another
  int time_outs_ = 0;     // of exchanges in a row; by their threads
};

}  // namespace lockstep
