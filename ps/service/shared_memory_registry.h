// The memory that a ps and the workers of its host see together: the published values, which the
// workers only read, and each worker's gradients, which the ps only reads. It is exchanged once for
// every worker (common/shm); afterwards pushes and pulls name places in it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/shm/fd_passing_server.h"
#include "common/shm/segment.h"
#include "proto/ps.pb.h"
#include "ps/shard/orders.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// Thread-safe.
class SharedMemoryRegistry {
 public:
  // Memory for a shard's values, which replaces what there was: for
  // ShardOptions::make_value_memory. nullopt, and a line in the log, where there is not enough.
  std::optional<ValueMemory> MakeValues(uint64_t bytes);

  // Where the worker may exchange memory, or why not.
  AttachMemoryReply Offer(const WorkerIdentity& worker, const std::string& host);
  // Forgets the memory of workers that are no members. What a shard holds of it stays mapped.
  void KeepOnly(const std::vector<Member>& members);

  // Whether the worker has the memory in which the values are now.
  bool HasValues(const WorkerIdentity& worker) const;
  // Puts what lies at the places of a push between the row indices that are its payload. NOT_FOUND:
  // this worker has attached no memory here; INVALID_ARGUMENT naming the variable: a place outside
  // it, a piece of a sparse gradient, another payload than its indices.
  absl::Status Locate(const PushRequest& request, PushOrder* order) const;

 private:
  struct Attached {
    Epoch epoch;
    Incarnation incarnation;
    std::shared_ptr<const shm::Segment> gradients;
    std::shared_ptr<const shm::Segment> values;  // that it was given
  };

  absl::Status Attach(const WorkerIdentity& worker, Attached attached);
  const Attached* Find(const WorkerIdentity& worker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::shared_ptr<const shm::Segment> values_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<WorkerIndex, Attached> attached_ ABSL_GUARDED_BY(mutex_);
  // From the first offer on. Last: its thread uses all above.
  std::unique_ptr<shm::FdPassingServer> server_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
