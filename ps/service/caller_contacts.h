// Whom a ps hears of by pings: logs a caller that is silent, and that it is back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "common/contact/silence_watch.h"
#include "ps/shard/calls.h"

namespace lockstep::ps {

// Thread-safe.
class CallerContacts {
 public:
  // A chief, or the ps of which this one keeps a copy.
  struct Server {
    enum Role { kChief, kPs };
    Role role;
    uint32_t index;  // in the cluster spec
  };
  // Of servers; of more the one that has been silent for longest is forgotten.
  static constexpr size_t kMostServers = 64;

  // A silent worker for which `is_member` is false is forgotten, and nothing is logged: the chief
  // has logged why it is gone. Any other silent caller is logged a few times and then forgotten: it
  // may have ended, or call another ps now. Both functions are called without a lock. `clock`
  // outlives the contacts.
  CallerContacts(const Clock* clock, std::function<bool(const WorkerIdentity&)> is_member,
                 std::function<void(absl::string_view)> log);

  // From now on `timer` has silence noticed, until Stop. The timer is gone before the contacts.
  void Start(Timer* timer);
  void Stop();

  // A ping of a member, or of a server, has come. `lease`: the silence that is worth a line.
  void OnPing(const WorkerIdentity& worker, absl::Duration lease);
  void OnPing(const Server& server, absl::Duration lease);

 private:
  struct Contact {
    std::optional<WorkerIdentity> worker;  // nullopt: a server
    absl::Duration lease;
    SilenceWatch watch;
  };
  using Contacts = std::map<std::string, Contact>;  // by name: "worker 1"

  // The line to log, if any.
  std::optional<std::string> RecordPing(const std::string& name,
                                        const std::optional<WorkerIdentity>& worker,
                                        absl::Duration lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoomForServer(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckSilences();
  // Whether the one that is silent has not ended, as far as anybody knows.
  bool IsMissed(const Contact& contact, absl::Duration now) const;
  void Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const std::function<bool(const WorkerIdentity&)> is_member_;
  const std::function<void(absl::string_view)> log_;
  absl::Mutex mutex_;
  Timer* timer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_armed_ ABSL_GUARDED_BY(mutex_) = false;
  Contacts contacts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
