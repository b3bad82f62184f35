// What there is to tell about a job: filled by its phases, put into words by StatusReporter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/leases/evaluation.h"
#include "chief/membership/quorum.h"
#include "chief/sync/shard_problem.h"
#include "common/base/ids.h"
#include "proto/chief.pb.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

enum class JobStage {
  kInitializing,  // shards are asked, and create their variables
  kGathering,     // until enough workers are members at every shard
  kTraining,
  kCompleting,  // every step is committed; the last version is evaluated and saved
  kSaving,      // the job ends early, and its last committed step is saved
  kOver,        // everybody is told
};

struct ShardFacts {
  bool has_variables = false;
  int64_t bytes = 0;        // of its variables
  GlobalStep closed_steps;  // 0 before training
  ShardProblem problem;     // without `since` before training
  // Of a job whose shards have copies. `without_copy`: for how long.
  ShardPlace place;
  absl::Duration without_copy;
};

// Of a save that is made because the job ends early.
struct DrainFacts {
  enum class Stage { kEarlierSave, kAskingShards, kWriting, kClosingStep };
  Stage stage = Stage::kEarlierSave;
  std::string problem;  // of the shards that are asked, or of the last save; empty: none
  GlobalStep step;      // that is being closed
};

// What each shard waits for; nullopt where it is not known.
using ProgressByShard = std::vector<std::optional<ShardProgress>>;

struct JobFacts {
  absl::Duration now;
  JobStage stage = JobStage::kInitializing;
  std::vector<ShardFacts> shards;

  // kInitializing: which shards have not answered, and why. kGathering: how many workers it takes.
  std::string uninitialized;
  uint32_t needed_workers = 0;
  bool is_disk_awaited = false;  // kInitializing: the job's checkpoint folder
  std::string disk_problem;      // kInitializing: of that folder; empty: none

  // kTraining, kCompleting: time since the last step, or result; whether that is unusually long.
  absl::Duration silence;
  bool is_silent = false;

  // kTraining: whether the step at hand can close; what the shards said last of it.
  Quorum quorum;
  ProgressByShard progress;

  // kCompleting: a save that runs or is to be repeated; the evaluation that runs, or null.
  bool is_saving = false;
  const Evaluation* evaluation = nullptr;

  // kSaving.
  DrainFacts drain;
};

}  // namespace lockstep::chief
