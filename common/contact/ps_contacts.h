// Whether this process reaches the ps: one that it does not is logged.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/contact/peer_contact.h"

namespace lockstep {

// Thread-safe.
class PsContacts {
 public:
  // Makes what asks the ps at an address, which errors call `name`.
  using MakePing =
      std::function<std::unique_ptr<PeerPing>(const std::string& name, const std::string& address)>;

  // Of each ps as of PeerContact; the log is the process's own.
  PsContacts(PeerContactOptions options, MakePing make_ping);

  // The shard is served there from now on; `name`, of the ps, for the log: "ps 1". Nothing changes
  // where that is known.
  void SetPlace(size_t shard, const std::string& name, const std::string& address);
  // The job runs, with all shards: the silence of each ps counts from now on, also where it has
  // not been reached yet, and of one that SetPlace names later.
  void CountSilence();
  // Ends all pings, for good: a later SetPlace does nothing. Waits for callbacks, so not in one.
  void Stop();

 private:
  struct Place {
    std::string address;
    std::unique_ptr<PeerContact> contact;
  };

  const PeerContactOptions options_;
  const MakePing make_ping_;
  absl::Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool counts_silence_ ABSL_GUARDED_BY(mutex_) = false;  // of one that was never reached
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);    // by shard
};

}  // namespace lockstep
