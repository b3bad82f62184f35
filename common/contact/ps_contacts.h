// PsContacts asks each ps whether this process reaches it, and logs each that it does not reach.
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
  // Makes the ping that asks the ps at an address. Errors call the ps `name`.
  using MakePing =
      std::function<std::unique_ptr<PeerPing>(const std::string& name, const std::string& address)>;

  // `options` are those of the PeerContact of each ps; the log is the process's own.
  PsContacts(PeerContactOptions options, MakePing make_ping);

  // The shard is served at `address` from now on. The log names the ps `name`: "ps 1". Does nothing
  // if the address is unchanged.
  void SetPlace(size_t shard, const std::string& name, const std::string& address);
  // The job runs, with all shards: the silence of each ps counts from now on, also if it has not
  // been reached yet. So does that of a ps that SetPlace names later.
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
