// MemoryClaims reserves the memory that the shards of a process will use. A shard, and the copy of
// another shard, are made at the same time. They allocate some of it only in training.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::ps {

// Bytes that are claimed while this pointer is held.
using MemoryClaim = std::shared_ptr<const void>;

// Thread-safe; outlives its claims.
class MemoryClaims {
 public:
  // `available`: bytes that this process can still take; nullopt: not known. Called on any thread.
  explicit MemoryClaims(std::function<std::optional<uint64_t>()> available);

  struct Answer {
    MemoryClaim claim;  // null: there is no room
    uint64_t room = 0;  // bytes, before the claim
    uint64_t claimed = 0;
  };
  Answer Claim(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the share of the unclaimed bytes for a claim of `bytes`. Shares are in proportion to
  // the claims, and change with them.
  uint64_t ShareOf(uint64_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Release(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<std::optional<uint64_t>()> available_;
  mutable absl::Mutex mutex_;
  // The largest amount available since there was last no claim.
  uint64_t whole_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t claimed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::ps
