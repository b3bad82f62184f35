// Whether this worker reaches the ps that serve it: one that it does not is logged.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "common/contact/peer_contact.h"

namespace lockstep::worker {

// Thread-safe.
class PsContacts {
 public:
  // Makes what asks the ps at an address, which errors call `name`.
  using MakePing =
      std::function<std::unique_ptr<PeerPing>(const std::string& name, const std::string& address)>;

  // `lease` as of PeerContactOptions. `timer` outlives the contacts.
  PsContacts(absl::Duration lease, MakePing make_ping, Timer* timer);

  // The shard is served there from now on; `name`, of the ps, for the log: "ps 1". Nothing changes
  // where that is known.
  void SetPlace(size_t shard, const std::string& name, const std::string& address);

 private:
  struct Place {
    std::string address;
    std::unique_ptr<PeerContact> contact;
  };

  const absl::Duration lease_;
  const MakePing make_ping_;
  Timer* const timer_;
  absl::Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);  // by shard
};

}  // namespace lockstep::worker
