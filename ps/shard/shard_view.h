// ShardView decides which processes may call the shard, by the job it serves, the chief's term, the
// epoch, and the live workers with their incarnations. An old process can change nothing.
//
// Pure; not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/shard/calls.h"

namespace lockstep::ps {

class ShardView {
 public:
  // The shard's part of the epoch's variables.
  enum class Hosted {
    kNothing,
    kIncomplete,  // a copy that lacks some state
    kOnlyHere,    // all, and no copy has them
    kCopied,      // all, and a copy has them, too
  };

  // `other_place`: ShardOptions::other_place.
  explicit ShardView(std::string other_place = "") : other_place_(std::move(other_place)) {}

  // The first view decides on job and shard index, the first one of a term on its chief.
  // FAILED_PRECONDITION: another job, another shard index than before. ABORTED: an older term or
  // epoch, an older view of the term, the term of another chief, replica views that are older than
  // the shard's, a shard that serves the workers alone and is to become a copy.
  // IsNoVariables: a copy that is to serve the workers and awaits state. INVALID_ARGUMENT: no job,
  // a worker twice.
  absl::Status SetView(const View& view, Hosted hosted);

  // ABORTED: an older term, or the term of another chief. FAILED_PRECONDITION: no view yet, another
  // job, or a term without a view.
  absl::Status CheckCommand(const Command& command) const;
  // For a command that only the serving ps obeys. As CheckCommand; UNAVAILABLE: this ps keeps a
  // copy, or a copy serves the workers in its place.
  absl::Status CheckServingCommand(const Command& command) const;
  // For the end of the job. As CheckCommand, but accepts a term without a view: a shard that its
  // copy has replaced has an older term than the chief.
  absl::Status CheckFinish(const Command& command) const;
  // Returns the shard's term, if it is of this chief, for a command of any of its terms; 0 before
  // the first view. ABORTED: another chief has the shard. FAILED_PRECONDITION: another job.
  absl::StatusOr<Term> TermOf(const Command& command) const;
  // ABORTED: another epoch or another incarnation. FAILED_PRECONDITION: another job, or not a
  // member. UNAVAILABLE: this ps keeps a copy, or a copy serves the workers in its place.
  absl::Status CheckWorker(const WorkerIdentity& worker) const;
  bool IsMember(WorkerIndex worker, Incarnation incarnation) const;
  bool IsMember(WorkerIndex worker) const { return members_.contains(worker); }

  // 0 before the first view.
  uint64_t job() const { return job_; }
  Term term() const { return term_; }
  // Returns whether the view differs from the last accepted one by its term or number.
  bool IsNew(const View& view) const {
    return Term(view.command.term()) != term_ || view.number != number_;
  }
  Epoch epoch() const { return epoch_; }
  ShardIndex shard() const { return shard_; }
  std::vector<std::pair<WorkerIndex, Incarnation>> members() const;
  // Replica views of the epoch; empty except in an elastic job.
  const ReplicaViews& replica_views() const { return replica_views_; }
  // True if this ps keeps a copy that does not serve the workers yet.
  bool is_copy() const { return is_copy_; }
  // The copy has applied all means that it holds: it is the primary from now on.
  void BecomePrimary() { is_copy_ = false; }
  // The copy has taken this shard's place, until another epoch.
  void Depose() { is_deposed_ = true; }
  bool is_deposed() const { return is_deposed_; }
  // A primary has no copy until a view names one again.
  void GoOnAlone() { copy_address_.clear(); }
  // The address of a primary's copy; empty: it is alone.
  const std::string& copy_address() const { return copy_address_; }
  // View::lease of the last view.
  absl::Duration lease() const { return lease_; }
  // The ps that has the other place of the shard.
  const std::string& other_place() const { return other_place_; }

 private:
  absl::Status CheckJob(uint64_t job) const;
  absl::Status CheckServes() const;
  absl::Status CheckNotDeposed() const;
  absl::Status CheckTerm(const Command& command) const;
  absl::Status CheckReplicas(const View& view) const;
  absl::Status CheckRole(const View& view, Hosted hosted) const;

  const std::string other_place_;
  uint64_t job_ = 0;
  Term term_;
  Incarnation chief_;    // whose term it is
  uint64_t number_ = 0;  // of the last view
  Epoch epoch_;
  ShardIndex shard_;
  absl::btree_map<WorkerIndex, Incarnation> members_;
  ReplicaViews replica_views_;
  bool is_copy_ = false;
  bool is_deposed_ = false;
  std::string copy_address_;
  absl::Duration lease_;
};

}  // namespace lockstep::ps
