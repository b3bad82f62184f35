// What the shards of a process will take of its memory: a shard, and the copy that it keeps of
// another one, are made at the same time, and take some of it only when the job trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::ps {

// Bytes that are claimed for as long as it is held.
using MemoryClaim = std::shared_ptr<const void>;

// Thread-safe; outlives its claims.
class MemoryClaims {
 public:
  // `available`: bytes that this process can still take; nullopt: nobody knows. Any thread.
  explicit MemoryClaims(std::function<std::optional<uint64_t>()> available);

  struct Answer {
    MemoryClaim claim;  // null: there is no room
    uint64_t room = 0;  // bytes, before the claim
    uint64_t claimed = 0;
  };
  Answer Claim(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of what nobody has claimed, the part of the one that has claimed so many bytes: parts are in
  // the proportion of the claims, and change with them.
  uint64_t ShareOf(uint64_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Release(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<std::optional<uint64_t>()> available_;
  mutable absl::Mutex mutex_;
  // The most that was available since nothing was claimed.
  uint64_t whole_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t claimed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::ps
