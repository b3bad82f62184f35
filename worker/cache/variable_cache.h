// The worker's copy of the variables at one version: dense ones whole, of sparse ones the rows that
// are asked for. Each of its users (training, evaluation) has its own. Dense variables may be read
// in the ps's memory instead of copied (Place).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/fan_in.h"
#include "common/base/ids.h"
#include "common/client/shard_session.h"
#include "common/tensor/tensor_maker.h"
#include "worker/cache/part_rows.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// One fetch at a time, from one thread or handed from one to the next. Variables are counted as in
// the layout, which is the graph's order. Fetching allocates nothing once it has fetched as many
// rows as it ever will, or from the start where it is told how many that are. Destroyed after its
// sessions.
class VariableCache {
 public:
  enum Place {
    kCopied,
    // In the memory of a ps on this host that shows its values, for variables that are not split.
    // The ps does not wait: a version that is two behind may be overwritten while it is read.
    kInPlace,
  };

  // `sessions[k]` is with shard k; their targets belong to the cache. The layout outlives the
  // cache. `make`: what values are copied to. `most_rows`: by variable, how many rows a fetch names
  // at most; the memory for them is made at once. Empty: it grows with the fetches.
  // INVALID_ARGUMENT: a layout for another number of shards.
  static absl::StatusOr<std::unique_ptr<VariableCache>> Create(
      const VariableLayout& layout, std::span<ShardSession* const> sessions, Place place = kCopied,
      TensorMaker make = OnHeap, std::span<const int64_t> most_rows = {});

  // Brings every dense variable, and the named rows of every sparse one, to `version`, from all
  // shards at once. rows[i] are those of variable i, ascending, each once; nothing for a dense one;
  // they stay until `done`. Dense variables that have the version already are not fetched again,
  // nor are the rows that FetchAhead brought for this version, which are the same.
  // Tells the newest version that any shard answered with: higher than asked for when the version
  // is kept no longer somewhere. A gradient computed from the mixture would be stale anyway.
  void Fetch(GlobalStep version, std::span<const std::span<const int64_t>> rows,
             Callback<GlobalStep> done);
  // Begins to bring every dense variable, and these rows of the sparse ones, to a version that is
  // still to come; the next fetch waits for that. Nobody may want an earlier one. Without `rows`
  // the dense ones alone.
  void FetchAhead(GlobalStep version, std::span<const std::span<const int64_t>> rows = {});
  // Fetch over asynchronous sessions. version_of tells the versions. Requests at least one row from
  // every shard with variables, so that its version is known.
  void FetchNewest(std::span<const std::span<const int64_t>> rows, Callback<GlobalStep> done);

  // views()[i] is variable i; of a sparse one [rows, ...], the rows last fetched. Valid until the
  // next fetch or FetchAhead, with which they may move.
  std::span<const TensorView> views() const { return views_; }
  // How the rows last fetched of a sparse variable lie in its parts; not those of a FetchAhead.
  const PartRows& part_rows(size_t variable) const { return *part_rows_[variable]; }

  // The lowest version among what the last fetch brought from the shard.
  GlobalStep version_of(size_t shard) const { return fetched_[shard]; }

 private:
  // A part, a target of its shard's session.
  struct Target {
    size_t variable = 0;
    size_t part = 0;
  };
  struct Shard {
    ShardSession* session = nullptr;
    std::vector<Target> targets;
    Tensor unwanted;  // memory for a row of the first target
  };
  // The fetch that was begun ahead.
  struct Ahead {
    bool is_pending = false;
    absl::Status status;
    absl::AnyInvocable<void()> then;  // waits for it; null: nothing does
  };

  VariableCache(const VariableLayout& layout, std::span<ShardSession* const> sessions, Place place,
                TensorMaker make, std::span<const int64_t> most_rows);
  Tensor MakeRows(const WholeVariable& variable, int64_t rows) const;
  void MakeTargets();
  // Tells the sessions what the next fetch brings, and where to: of sparse variables these rows,
  // which are next_rows_ then.
  void SetTargets(std::span<const std::span<const int64_t>> rows, bool with_dense);
  // The same with the rows of before, or none.
  void ApplyTargets(bool with_dense, bool with_rows);
  // For what SetTargets wants of it.
  MutableTensorView MemoryOf(const Target& target);
  // A shard without any gets one row, which nobody reads.
  void EnsureTargets();
  // `done` gets the newest version, after the values are bound.
  void StartFetch(GlobalStep version, FetchKind kind, Callback<GlobalStep> done);
  // Calls `then` when no fetch that was begun ahead is pending.
  void AfterAhead(absl::AnyInvocable<void()> then);
  void OnAhead(GlobalStep wanted, const absl::Status& status);
  void FetchMissing(GlobalStep version, std::span<const std::span<const int64_t>> rows,
                    Callback<GlobalStep> done);
  void OnFetched(GlobalStep version, GlobalStep newest, Callback<GlobalStep> done);
  // Whether the part may be read in the ps's memory.
  bool IsInPlace(const Target& target) const;
  void BindMappedValues();

  const VariableLayout& layout_;
  const Place place_;
  const TensorMaker make_;
  std::vector<Tensor> memory_;  // of a sparse variable with room for the most rows
  std::vector<TensorView> views_;
  // Null for a dense variable. The rows of the last fetch, and those that are brought ahead.
  std::vector<std::unique_ptr<PartRows>> part_rows_;
  std::vector<std::unique_ptr<PartRows>> next_rows_;
  std::vector<Shard> shards_;
  FanIn<GlobalStep> versions_;           // by shard, of the fetch under way
  std::span<const GlobalStep> fetched_;  // the versions of the last fetch
  bool fetches_dense_ = false;           // the fetch under way, or the last one
  bool fetches_rows_ = false;
  GlobalStep dense_version_ = GlobalStep(-1);
  GlobalStep rows_version_ = GlobalStep(-1);  // of next_rows_
  absl::Mutex mutex_;
  Ahead ahead_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
