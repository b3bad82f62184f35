// Pulls that wait for their version, each by the first part of it that is missing: what becomes
// readable finds the pulls that wait for it, and walks no others.
//
// How many wait, and the memory that they take, is bounded per worker and in total
// (common/base/limits.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/callback.h"
#include "ps/shard/calls.h"
#include "ps/shard/catalog.h"
#include "ps/shard/deferred_callbacks.h"

namespace lockstep::ps {

struct ParkedPull {
  WorkerIdentity worker;
  GlobalStep version;
  std::shared_ptr<const std::vector<ResolvedPiece>> pieces;
  Callback<PullResult> done;
  uint64_t kept_bytes = 0;  // as in PullArguments
  bool by_reference = false;
  std::shared_ptr<const void> pin = nullptr;  // counts its values as not read
  size_t num_there = 0;                       // pieces, from the first on, that have been found
};

// A version of a variable, or one range of it.
struct AwaitedPart {
  static constexpr size_t kWhole = std::numeric_limits<size_t>::max();

  GlobalStep version;
  size_t variable = 0;
  size_t range = kWhole;

  friend bool operator==(const AwaitedPart&, const AwaitedPart&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const AwaitedPart& part) {
    return H::combine(std::move(state), part.version, part.variable, part.range);
  }
};

// Not thread-safe. Parking and answering allocate nothing once as many pulls have waited before.
class ParkedPulls {
 public:
  using Attempt = std::variant<PullResult, AwaitedPart, absl::Status>;

  // Returns the pull's number for Cancel. The same pull by the same worker, if it waits already, is
  // answered UNAVAILABLE. RESOURCE_EXHAUSTED: too many wait; `pull` is left to the caller.
  absl::StatusOr<uint64_t> Park(ParkedPull* pull, const AwaitedPart& part,
                                DeferredCallbacks* deferred);
  // Answers those that wait for `part` and can be answered: `attempt` returns the result, the part
  // for which the pull has to wait on, or an error.
  void Retry(const AwaitedPart& part, absl::FunctionRef<Attempt(ParkedPull*)> attempt,
             DeferredCallbacks* deferred);
  // Answers it CANCELLED if it still waits.
  void Cancel(uint64_t number, DeferredCallbacks* deferred);
  void FailIf(absl::FunctionRef<bool(const ParkedPull&)> condition, const absl::Status& status,
              DeferredCallbacks* deferred);

  size_t size() const { return total_.pulls; }
  uint64_t num_bytes() const { return total_.bytes; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  struct Entry {
    ParkedPull pull;
    AwaitedPart part;
    uint64_t identity = 0;  // hash of what makes two pulls the same
    uint64_t bytes = 0;
    bool is_used = false;
    uint32_t generation = 0;    // counts the pulls that the entry has had
    uint32_t previous = kNone;  // of those that wait for the same part
    uint32_t next = kNone;      // the same; of a free entry, the next free one
  };
  struct Chain {
    uint32_t first = kNone;
    uint32_t last = kNone;
  };
  struct Share {
    size_t pulls = 0;
    uint64_t bytes = 0;
  };

  absl::Status CheckRoom(const ParkedPull& pull, uint64_t bytes) const;
  uint32_t TakeEntry();
  void Link(uint32_t at);
  void Unlink(uint32_t at);
  // Answers the pull of an entry that is in no chain, and frees the entry.
  void Answer(uint32_t at, absl::StatusOr<PullResult> result, DeferredCallbacks* deferred);

  std::vector<Entry> entries_;
  uint32_t first_free_ = kNone;
  absl::flat_hash_map<AwaitedPart, Chain> chains_;
  absl::flat_hash_map<uint64_t, uint32_t> entry_of_identity_;
  absl::flat_hash_map<WorkerIndex, Share> share_of_worker_;
  Share total_;
};

// Who reads from a shard, in all its epochs.
struct Readers {
  ParkedPulls parked;
  uint64_t num_answered = 0;  // pulls, with values
  // Bytes in replies that a worker has not read, and in those that it waits for.
  absl::flat_hash_map<WorkerIndex, std::shared_ptr<std::atomic<uint64_t>>> unread;
};

}  // namespace lockstep::ps
