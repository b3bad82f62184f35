// JobFacts is the state of a job for reports. Its phases fill it; StatusReporter formats it.
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
  kGoingBack,   // it has ended, and starts again from a checkpoint, which is being read
  kOver,        // all tasks are told
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

// The save of a job that ends early.
struct DrainFacts {
  enum class Stage { kEarlierSave, kAskingShards, kWriting, kClosingStep };
  Stage stage = Stage::kEarlierSave;
  std::string problem;  // of the asked shards, or of the last save; empty: none
  GlobalStep step;      // that is being closed
};

// By shard: the progress it reported; nullopt if not known.
using ProgressByShard = std::vector<std::optional<ShardProgress>>;

struct JobFacts {
  absl::Duration now;
  absl::Duration real_now;  // as JobState::real_clock
  JobStage stage = JobStage::kInitializing;
  std::vector<ShardFacts> shards;

  // kInitializing: the shards that have not answered, with reasons. kGathering: the workers needed.
  std::string uninitialized;
  uint32_t needed_workers = 0;
  bool is_disk_awaited = false;  // kInitializing: the job's checkpoint folder
  std::string disk_problem;      // kInitializing: of that folder; empty: none

  // kTraining, kCompleting: time since the last step, or result; true if that is unusually long.
  absl::Duration silence;
  bool is_silent = false;

  // kTraining: whether the current step can close; the shards' last reports on it.
  Quorum quorum;
  ProgressByShard progress;

  // kCompleting: a save runs or is to be repeated; the evaluation that runs, or null.
  bool is_saving = false;
  const Evaluation* evaluation = nullptr;

  // kSaving.
  DrainFacts drain;
};

}  // namespace lockstep::chief
