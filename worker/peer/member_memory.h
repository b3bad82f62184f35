// The memory of members on this host. Each hands its own over once in a view; this worker only
// reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/shm/fd_passing_server.h"
#include "common/shm/segment.h"
#include "proto/ps.pb.h"

namespace lockstep::worker {

// Thread-safe.
class MemberMemory {
 public:
  using Memory = std::shared_ptr<const shm::Segment>;
  struct Elements {
    std::span<const std::byte> bytes;
    Memory owner;
  };

  // `own` is what the member gets in exchange. Null: this worker shares no memory.
  MemberMemory(Memory own, int members) : own_(std::move(own)), attached_(members) {}

  // Where the member may hand over its memory, or why not. `host`: the boot id of its kernel.
  AttachMemoryReply Offer(int position, const std::string& host);
  // What a message of the member names. NOT_FOUND: it has attached no memory. INVALID_ARGUMENT: the
  // place is not in it.
  absl::StatusOr<Elements> Find(int position, uint64_t place, uint64_t size) const;

 private:
  const Memory own_;
  mutable absl::Mutex mutex_;
  std::vector<Memory> attached_ ABSL_GUARDED_BY(mutex_);  // by position
  // From the first offer on. Last: its thread uses all above.
  std::unique_ptr<shm::FdPassingServer> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
