// Asks a peer from time to time whether it can be reached, beside the calls of the job: these may
// be parked for long, so that a missing answer says nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/base/timer.h"
#include "common/contact/silence_watch.h"
#include "common/log/log.h"

namespace lockstep {

// How one peer is asked. Destruction ends a call under way and waits for its callback.
class PeerPing {
 public:
  virtual ~PeerPing() = default;
  // Does not block. `done` once, within `deadline`, also before the call returns. UNAVAILABLE and
  // DEADLINE_EXCEEDED: the peer was not reached. Anything else comes from the peer.
  virtual void Start(absl::Duration deadline, StatusCallback done) = 0;
};

struct PeerContactOptions {
  // The silence that is logged, once it has lasted for so long. The peer is asked four times in it.
  absl::Duration lease;
  Timer* timer = nullptr;              // outlives the contact
  const Clock* clock = Clock::Real();  // as the timer
  // Gets the lines to log, on the threads of `timer` and of the ping.
  std::function<void(absl::string_view)> log = log::Warning;
  // Of a peer that has not been reached yet nothing is said: others wait for it and say so.
  bool waits_for_first = false;
  // Called once, when the first peer is reached for the first time. May be null. On the thread of
  // the ping, without a lock.
  std::function<void()> on_reached;
};

// Thread-safe.
class PeerContact {
 public:
  // Asks from now on. `peer` as lines name it: "ps 1".
  PeerContact(PeerContactOptions options, std::string peer, std::unique_ptr<PeerPing> ping);
  // Waits for callbacks under way. Not in one.
  ~PeerContact();

  // Asks this peer from now on. What was seen of the one before is dropped. Also in a callback.
  void MoveTo(std::string peer, std::unique_ptr<PeerPing> ping);
  // Other calls have reached the peer: its silence counts from now on, if it did not before.
  void CountSilence();
  // Asks and logs no more. Does not block, for one who cannot end this contact now.
  void Mute();

 private:
  // Of a peer before, with a call under way.
  struct Left {
    uint64_t generation;
    std::unique_ptr<PeerPing> ping;
  };

  void Tick();
  void OnAnswer(uint64_t generation, const absl::Status& answer);
  SilenceWatch WatchOf(std::string peer) const;

  const PeerContactOptions options_;
  const std::shared_ptr<Gate> gate_;  // held by ticks; outlives the contact for the timer
  absl::Mutex mutex_;
  std::unique_ptr<PeerPing> ping_ ABSL_GUARDED_BY(mutex_);
  std::vector<Left> left_ ABSL_GUARDED_BY(mutex_);
  // Of peers before, without a call. The next tick destroys them, because MoveTo and OnAnswer may
  // be in a callback of theirs.
  std::vector<std::unique_ptr<PeerPing>> idle_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // counts the moves
  SilenceWatch watch_ ABSL_GUARDED_BY(mutex_);
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration next_ask_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool is_muted_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_watched_ ABSL_GUARDED_BY(mutex_);  // its silence counts
  bool was_reached_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep
