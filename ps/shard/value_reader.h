// ValueReader answers the workers' pulls of values by version, as they are made, and of kept
// averages and slots. A pull waits until its version exists.
#pragma once

#include <memory>

#include "ps/shard/parked_pulls.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/stored_version.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// Guarded by the shard's lock.
class ValueReader {
 public:
  // All outlive the reader.
  ValueReader(const EpochVariables* variables, const SnapshotStore* snapshots,
              const VersionsToStore* to_store, Readers* readers)
      : variables_(*variables), snapshots_(*snapshots), to_store_(*to_store), readers_(*readers) {}

  // Answers the pull, with values or an error, or parks it; with `is_over` it parks none.
  void Pull(const PullArguments& arguments, std::vector<ResolvedPiece> pieces, bool is_over,
            Callback<PullResult> done, DeferredCallbacks* deferred);
  // Counts the bytes of the variable's older versions that replies keep.
  void OnPublished(size_t variable);
  // Answers the pulls that wait for the newest version of the variable.
  void RetryPulls(size_t variable, DeferredCallbacks* deferred);
  // Answers the pulls that wait for a chunk of the version after it.
  void RetryPulls(size_t variable, size_t chunk, DeferredCallbacks* deferred);

 private:
  // Counts the bytes of the pull as unread while the result exists. RESOURCE_EXHAUSTED: too many.
  absl::StatusOr<std::shared_ptr<const void>> PinUnread(WorkerIndex worker,
                                                        const std::vector<ResolvedPiece>& pieces);
  // Returns the result, counted as answered, or the part for which the pull has to wait.
  ParkedPulls::Attempt TryPull(ParkedPull* pull);
  ParkedPulls::Attempt ReadVersion(ParkedPull* pull) const;
  absl::Status Park(ParkedPull* pull, const AwaitedPart& part, bool is_over, PullTicket* ticket,
                    DeferredCallbacks* deferred);

  const EpochVariables& variables_;
  const SnapshotStore& snapshots_;
  const VersionsToStore& to_store_;
  Readers& readers_;
  uint64_t extra_bytes_ = 0;  // sum of Variable::ExtraBytes at each variable's last publication
};

}  // namespace lockstep::ps
