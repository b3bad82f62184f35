// FdPassingServer exchanges memory with peers of the same machine and user: an abstract Unix
// socket, and a thread that answers on it. A peer sends a secret, which it was told elsewhere and
// which counts once, and its own segment. The answer brings ours.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/fs/file_descriptor.h"
#include "common/shm/segment.h"

namespace lockstep::shm {

// Thread-safe. Destruction stops accepting and joins the thread.
class FdPassingServer {
 public:
  // Takes the peer's segment, null for none; an error refuses it. Called on the server's thread,
  // before the peer has its answer. Never called after the offer has expired.
  using OnTaken = std::function<absl::Status(std::shared_ptr<const Segment> theirs)>;

  // A peer that has said nothing for `patience` is dropped; an offer waits ten times as long. By
  // the monotonic time of `clock`, which outlives the server.
  static absl::StatusOr<std::unique_ptr<FdPassingServer>> Start(
      absl::Duration patience = absl::Seconds(2), const Clock* clock = Clock::Real());
  ~FdPassingServer();

  // The name of the socket, in the abstract namespace of this network namespace.
  const std::string& socket() const { return name_; }
  // Returns the secret for one peer. That peer gets `ours` (null: nothing) in exchange for a
  // segment or for nothing.
  absl::StatusOr<uint64_t> Offer(std::shared_ptr<const Segment> ours, OnTaken taken);

 private:
  struct Offered {
    std::shared_ptr<const Segment> ours;
    OnTaken taken;
    absl::Duration expires;  // of the clock's monotonic time
  };
  struct Peer {
    FileDescriptor socket;
    absl::Duration expires;  // of the clock's monotonic time
  };

  FdPassingServer(absl::Duration patience, const Clock* clock, std::string name,
                  FileDescriptor listener, FileDescriptor stop);
  void Serve();
  bool Accept(std::vector<Peer>* peers);
  void Answer(const FileDescriptor& peer);
  absl::StatusOr<std::shared_ptr<const Segment>> Exchange(const FileDescriptor& peer);

  const absl::Duration patience_;
  const Clock* const clock_;
  const std::string name_;
  const FileDescriptor listener_;
  const FileDescriptor stop_;  // readable when the thread is to end
  absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Offered> offers_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: uses all above
};

}  // namespace lockstep::shm
