// ValueReader answers the workers' pulls of values by version, as they are made, and of kept
// averages and slots. A pull waits until its version exists.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ps/shard/gradient_receiver.h"
#include "ps/shard/parked_pulls.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/stored_version.h"
#include "ps/shard/unread_versions.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// Guarded by the shard's lock.
class ValueReader {
 public:
  // All outlive the reader.
  ValueReader(const EpochVariables* variables, const GradientReceiver* gradients,
              const SnapshotStore* snapshots, const VersionsToStore* to_store, Readers* readers)
      : variables_(*variables),
        gradients_(*gradients),
        snapshots_(*snapshots),
        to_store_(*to_store),
        readers_(*readers) {}

  // Answers the pull, with values or an error, or parks it; with `is_over` it parks none.
  void Pull(const PullArguments& arguments, std::vector<ResolvedPiece> pieces, bool is_over,
            Callback<PullResult> done, DeferredCallbacks* deferred);
  // Answers the pulls that wait for the newest version of the variable.
  void RetryPulls(size_t variable, DeferredCallbacks* deferred);
  // Answers the pulls that wait for a chunk of the version after it.
  void RetryPulls(size_t variable, size_t chunk, DeferredCallbacks* deferred);
  // RESOURCE_EXHAUSTED: unread replies to the worker keep values that the shard itself no longer
  // keeps. They take the memory of its next gradient.
  absl::Status CheckHasRead(const WorkerIdentity& worker) const;
  // Drops what it knows of the unread replies to replicas of which `has_left` is true.
  void ForgetUnread(absl::FunctionRef<bool(WorkerIndex worker, Incarnation incarnation)> has_left);

 private:
  struct Replica {
    WorkerIndex worker;
    Incarnation incarnation;
    uint32_t tower = 0;

    friend bool operator==(const Replica&, const Replica&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Replica& replica) {
      return H::combine(std::move(state), replica.worker, replica.incarnation, replica.tower);
    }
  };

  // A worker evaluates one version, which is kept, while it trains with another.
  struct Unread {
    explicit Unread(size_t num_variables, const std::shared_ptr<std::atomic<uint64_t>>& copied =
                                              std::make_shared<std::atomic<uint64_t>>(0))
        : to_train(num_variables, copied), to_evaluate(num_variables, copied) {}

    UnreadVersions to_train;
    UnreadVersions to_evaluate;  // kept versions, averages and slots
    // Bytes of rows, also of those that the worker waits for.
    const std::shared_ptr<std::atomic<uint64_t>> rows = std::make_shared<std::atomic<uint64_t>>(0);
  };

  Unread& UnreadOf(const WorkerIdentity& worker);
  // Counts the bytes of the pull as unread while the result exists. RESOURCE_EXHAUSTED: too many.
  absl::StatusOr<std::shared_ptr<const void>> PinUnread(const WorkerIdentity& worker,
                                                        const std::vector<ResolvedPiece>& pieces);
  // The same, of rows of tables alone.
  absl::StatusOr<std::shared_ptr<const void>> PinRows(const WorkerIdentity& worker, uint64_t bytes);
  uint64_t MostUnreadRowBytes() const;
  // Counts the versions that the result keeps, and has it copied where it may keep none.
  // `is_value`: it has no averages or slots. RESOURCE_EXHAUSTED: more copies are unread than may
  // be.
  absl::Status KeepUnread(const ParkedPull& pull, bool is_value, PullResult* result);
  // Counts the result as answered, and what it keeps as unread. The pull's callback copies what is
  // to be copied.
  absl::Status Finish(ParkedPull* pull, bool is_value, PullResult* result);
  // Returns the result, counted as answered, an error, or the part for which the pull has to wait.
  ParkedPulls::Attempt TryPull(ParkedPull* pull);
  ParkedPulls::Attempt ReadVersion(ParkedPull* pull) const;
  absl::Status Park(ParkedPull* pull, const AwaitedPart& part, bool is_over, PullTicket* ticket,
                    DeferredCallbacks* deferred);

  const EpochVariables& variables_;
  const GradientReceiver& gradients_;
  const SnapshotStore& snapshots_;
  const VersionsToStore& to_store_;
  Readers& readers_;
  absl::flat_hash_map<Replica, Unread> unread_;
};

}  // namespace lockstep::ps
