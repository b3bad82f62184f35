// Everything that is decided before the network is touched: the job and the model checked, the
// variables placed, the number of steps, where to start from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "chief/placement/assign.h"
#include "chief/plan/start_choice.h"
#include "common/base/ids.h"
#include "common/base/lost_variables.h"
#include "common/checkpoint/origin.h"
#include "common/checkpoint/owner.h"
#include "common/config/cluster_spec.h"
#include "common/dataset/measure.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"
#include "proto/tensor.pb.h"

namespace lockstep::chief {

struct JobPlan {
  ClusterSpec cluster;
  JobDef job;  // complete: paths absolute, defaults filled in
  ModelDef model;
  Placement placement;
  Balance balance;
  uint32_t loss_variable = 0;  // id
  bool is_classifier = false;
  int64_t labels_per_example = 1;
  DatasetSizes examples;
  std::string named_characters;  // data.text.characters of the job file
  GlobalStep max_steps;
  std::function<float(GlobalStep)> learning_rate;
  std::string optimizer;  // kind, as in a manifest

  // Where it starts, unless it goes on from shards that have trained.
  StartMode mode = StartMode::kBegin;
  GlobalStep start;          // 0, or the checkpoint's step
  Epoch epoch;               // above all that its checkpoint folder has had
  CheckpointOrigin origin;   // of that epoch
  std::string restore_from;  // the checkpoint's folder; empty: from the initial values
  std::string restored_job;  // the texts in the checkpoint
  std::string restored_model;
  std::string diverged;  // what is wrong with its values (DescribeDivergence); empty: nothing
  std::string earlier;   // a checkpoint that a beginning would bury; empty: none
  std::string lost;      // why it goes back while the job runs; empty: it does not
  std::string finished;  // kSucceed: the checkpoint of the last step; empty: there is none

  // FolderOwner::source.
  std::string source() const { return origin.epoch == 0 ? restore_from : ""; }
  // kResume: the checkpoint is of the last step.
  bool is_done() const { return start >= max_steps; }
  // A job that ends so begins again from a checkpoint (JobSeries): nobody is told that it ends.
  bool goes_back_after(const absl::Status& end) const {
    return !job.checkpoint().folder().empty() && HasLostVariables(end);
  }

  // The workers keep the variables.
  bool is_replicated() const { return job.strategy().has_replicated(); }
  // Workers come and go while it runs.
  bool is_elastic() const { return job.sync().has_min_replicas(); }
  bool asynchronous() const { return job.sync().has_asynchronous(); }
  // Gradients that a step needs, and the live workers without which it cannot close.
  uint32_t required() const;
  uint32_t needed_workers() const;
  // In each step, and none is ever left out.
  bool every_replica_counts() const;
  // Examples whose gradients one step applies.
  int64_t examples_per_step() const;
};

// In `root`: the newest checkpoint of its owner's history if it is of step `last` or later; empty:
// it is not, or cannot be read, or there is none. Errors of ReadOwner and ReadHistoryPoints.
absl::StatusOr<std::string> FindLastCheckpoint(const std::string& root, GlobalStep last);

// The plan by which a job that has lost its state, and has a checkpoint folder, goes on: from the
// newest checkpoint, which is read whole; where it has written none, from where it began: the
// checkpoint of another folder, or the initial values. `lost` says what was lost. `owed`: the
// folder may not name its owner (FolderClaim::owed_owner), and so not where the job began; this one
// does. A run that began with the initial values, and died before it had set the checkpoints of
// earlier runs aside, has them in `earlier`. Errors as MakePlan.
absl::StatusOr<JobPlan> GoBack(JobPlan plan, std::string lost,
                               const std::optional<FolderOwner>& owed = std::nullopt);

// Reads the job file, its model and the sizes of its data, and what is in its checkpoint folder.
// The first thing that is wrong, one line naming file, place and remedy: INVALID_ARGUMENT,
// NOT_FOUND, DATA_LOSS.
absl::StatusOr<JobPlan> MakePlan(const std::string& job_file, const ClusterSpec& cluster,
                                 const StartChoice& start = {});

}  // namespace lockstep::chief
