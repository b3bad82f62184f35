// The order of a step (docs/architecture.md, "Life of a gradient"): variables at the stamp's
// version, the step's batch, forward and backward over the towers, push to every shard, then a
// token, whose number is the next stamp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/client/gradient_pusher.h"
#include "common/client/ps_client.h"
#include "worker/cache/variable_cache.h"
#include "worker/data/pipeline.h"
#include "worker/step/gradient_clipper.h"
#include "worker/step/progress.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {

struct TrainingLoopOptions {
  WorkerIdentity identity;
  Placement placement;
  GlobalStep start_step;
  uint64_t seed = 0;
  Clipping clipping;
  std::vector<std::string> shard_names;          // "ps 1 (host:port)", for messages
  absl::Duration patience = absl::Seconds(120);  // with an unreachable ps
  const Clock* clock = Clock::Real();
};

// Run is called once, on a thread that it keeps until the end; Stop from any other.
class TrainingLoop {
 public:
  // Everything pointed to outlives the loop.
  TrainingLoop(TrainingLoopOptions options, std::span<PsData* const> shards, TowerGroup* towers,
               Pipeline* data, Progress* progress);
  ~TrainingLoop();

  // Trains until the token queue says that the job is done (OK) or something cannot be repaired by
  // repeating. CANCELLED after Stop.
  absl::Status Run();
  // Ends Run at its next wait for a token. Once.
  void Stop() { stop_.Notify(); }

 private:
  absl::Status RunStep(GlobalStep local_step);
  absl::StatusOr<DequeueTokenReply> NextToken();

  const TrainingLoopOptions options_;
  const std::vector<PsData*> shards_;
  TowerGroup* const towers_;
  Pipeline* const data_;
  Progress* const progress_;
  absl::Notification stop_;

  // Of the thread in Run.
  std::unique_ptr<VariableCache> variables_;
  std::vector<Tensor> gradients_;  // in the placement's order; kept until the next step, so that
                                   // they can be sent again
  std::vector<MutableTensorView> gradient_views_;
  std::vector<int> variables_per_shard_;
  std::vector<std::unique_ptr<GradientPusher>> pushers_;  // one per shard
  std::unique_ptr<GradientClipper> clipper_;              // in front of the pushers
  PushSeq push_seq_;
  DequeueSeq dequeue_seq_;
};

}  // namespace lockstep::worker
