// The memory that a server and the workers of its host see together: the published values, which
// the workers only read, and each worker's gradients, which the server only reads. It is exchanged
// once for every worker (common/shm).
#pragma once

#include <google/protobuf/repeated_field.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/shm/fd_passing_server.h"
#include "common/shm/segment.h"
#include "common/transport/lent_memory.h"
#include "proto/ps.pb.h"

namespace lockstep {

// Thread-safe.
class SharedMemoryRegistry {
 public:
  using Memory = std::shared_ptr<const shm::Segment>;

  // Memory for published values, which replaces what there was. It is seen while the caller holds
  // it. nullopt, and a line in the log, where there is not enough.
  std::optional<LentMemory> MakeValues(uint64_t bytes);

  // Where the worker may exchange memory, or why not.
  AttachMemoryReply Offer(const WorkerIdentity& worker, const std::string& host);
  // Drops the memory of workers that are no members. What somebody holds of it stays mapped.
  void KeepOnly(const google::protobuf::RepeatedPtrField<Member>& members);

  // The memory in which the values are now, if the worker has it. Otherwise null.
  Memory ValuesSeenBy(const WorkerIdentity& worker) const;
  // The worker's memory. NOT_FOUND: it has attached none here.
  absl::StatusOr<Memory> GradientsOf(const WorkerIdentity& worker) const;

 private:
  struct Attached {
    uint64_t epoch = 0;
    uint64_t incarnation = 0;
    Memory gradients;
    std::weak_ptr<const shm::Segment> values;  // that it was given
  };

  absl::Status Attach(uint32_t worker, Attached attached);
  const Attached* Find(const WorkerIdentity& worker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::weak_ptr<const shm::Segment> values_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, Attached> attached_ ABSL_GUARDED_BY(mutex_);  // by worker
  // From the first offer on. Last: its thread uses all above.
  std::unique_ptr<shm::FdPassingServer> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
