// The worker's copy of the variables at one version: dense ones whole, of sparse ones the rows that
// are asked for. Each of its users (training, evaluation) has its own. Of dense variables it may
// have no copy and look at the ps's own values instead (Place).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/fan_in.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"
#include "common/client/variable_puller.h"
#include "common/tensor/tensor.h"
#include "proto/ps.pb.h"
#include "worker/cache/part_rows.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Not thread-safe. Variables are counted as in the layout, which is the graph's order. Fetching
// allocates nothing once it has fetched as many rows as it ever will.
class VariableCache {
 public:
  enum Contents {
    kValues,
    kAverages,  // in place of the values of variables that have one, of versions that are kept
    kNewest,    // of an asynchronous job: whatever values each ps has at that moment
  };

  enum Place {
    kCopied,
    // Where the ps is on this host and shows its values, in its memory; so for variables that are
    // not split. The ps does not wait for us: a version that is two behind may be written over
    // while it is being read.
    kInPlace,
  };

  // `shards[k]` talks to ps k and outlives the cache, as the layout does. `wire_type` as in
  // PullerOptions. INVALID_ARGUMENT: a layout for another number of shards.
  static absl::StatusOr<std::unique_ptr<VariableCache>> Create(
      const VariableLayout& layout, std::span<PsData* const> shards, const WorkerIdentity& identity,
      Contents contents = kValues, Place place = kCopied, DType wire_type = DType::kFloat32,
      absl::Duration patience = PullerOptions().patience);

  // Brings every dense variable, and the named rows of every sparse one, to `version`, from all
  // shards at once, and blocks until all are here. rows[i] are those of variable i, ascending, each
  // once; nothing for a dense one. What is dense and has that version already is not fetched again,
  // nor are the rows that FetchAhead brought with it, which are the same.
  // Returns the newest version that any shard answered with: higher than asked for when the version
  // is kept no longer somewhere (then a gradient computed from the mixture would be stale anyway).
  absl::StatusOr<GlobalStep> Fetch(GlobalStep version,
                                   std::span<const std::span<const int64_t>> rows);
  // Begins to bring every dense variable, and these rows of the sparse ones, to a version that is
  // still to come, and returns at once; the next fetch waits for that. Whoever asks must be sure
  // that nobody can want one of before. Without `rows` the dense ones alone.
  void FetchAhead(GlobalStep version, std::span<const std::span<const int64_t>> rows = {});
  // Fetch of kNewest: version_of tells the versions. Requests at least one row from every shard
  // with variables, so that its version is known.
  absl::Status FetchNewest(std::span<const std::span<const int64_t>> rows);

  // views()[i] is variable i; of a sparse one [rows, ...], the rows last fetched. Valid until the
  // next fetch or FetchAhead, with which they may move.
  std::span<const TensorView> views() const { return views_; }
  // How the rows last fetched of a sparse variable lie in its parts; not those of a FetchAhead.
  const PartRows& part_rows(size_t variable) const { return *part_rows_[variable]; }

  // The lowest version among what the last fetch brought from the shard.
  GlobalStep version_of(size_t shard) const { return fetched_[shard]; }

 private:
  // A part and where it lives in its shard's puller.
  struct Target {
    size_t variable = 0;
    size_t part = 0;
  };
  struct Shard {
    std::unique_ptr<VariablePuller> puller;  // null: no variable lives there
    std::vector<Target> targets;
    Tensor unwanted;  // memory for a row of the first target
  };

  VariableCache(const VariableLayout& layout, size_t num_shards, Place place);
  void MakePullers(std::span<PsData* const> shards, const PullerOptions& options);
  // Tells the pullers what the next fetch brings, and where to: of sparse variables these rows,
  // which are next_rows_ then.
  void SetTargets(std::span<const std::span<const int64_t>> rows, bool with_dense);
  // The same with the rows of before, or none.
  void Aim(bool with_dense, bool with_rows);
  // For what SetTargets wants of it.
  MutableTensorView MemoryOf(const Target& target);
  // Lets a row come where nothing would.
  void AimAtSomething();
  void StartFetch(GlobalStep version, PullAhead ahead);
  absl::Status FinishFetch();
  // Waits for what was begun ahead.
  absl::Status FinishAhead();
  // Whether the part may be read in the ps's memory.
  bool IsInPlace(const Target& target) const;
  void BindMappedValues();

  const VariableLayout& layout_;
  const Place place_;
  std::vector<Tensor> memory_;  // of a sparse variable with room for the most rows so far
  std::vector<TensorView> views_;
  // Null for a dense variable. The rows of the last fetch, and those that are brought ahead.
  std::vector<std::unique_ptr<PartRows>> part_rows_;
  std::vector<std::unique_ptr<PartRows>> next_rows_;
  FanIn<GlobalStep> versions_;           // by shard, of the fetch under way
  std::vector<Shard> shards_;            // their pullers tell the versions
  std::span<const GlobalStep> fetched_;  // the versions of the last fetch
  bool is_ahead_ = false;
  bool fetches_dense_ = false;  // the fetch under way, or the last one
  bool fetches_rows_ = false;
  GlobalStep dense_version_ = GlobalStep(-1);
  GlobalStep rows_version_ = GlobalStep(-1);  // of next_rows_
};

}  // namespace lockstep::worker
