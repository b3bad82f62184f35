// One step of one replica, between two waits: the rows that the batch needs, the variables, forward
// and backward over the towers, the gradients to every shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/client/joined_calls.h"
#include "common/client/ps_client.h"
#include "worker/cache/variable_cache.h"
#include "worker/cache/variable_layout.h"
#include "worker/data/pipeline.h"
#include "worker/step/gradient_clipper.h"
#include "worker/step/gradient_sender.h"
#include "worker/step/progress.h"
#include "worker/step/timeline.h"
#include "worker/tower/batch_rows.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {

struct StepRunnerOptions {
  WorkerIdentity identity;
  uint64_t seed = 0;
  Clipping clipping;
  bool asynchronous = false;
  // The next step is a later one for certain (PER_REPLICA tokens): its values are asked for as soon
  // as this one's are used, and come while the gradient still leaves; where that is one message, in
  // one call with it and with the token.
  bool fetch_ahead = false;
  bool sum_towers = false;  // the sum over the towers is pushed, not their mean
  // The towers read a ps's values in its own memory, where that can be had. A version may be
  // written over while they do, but never before every shard has closed its step: then its gradient
  // is stale everywhere. Not of an asynchronous job, where nothing says so.
  bool values_in_place = false;
  // As which gradients and values travel: PusherOptions, PullerOptions.
  DType wire_type = DType::kFloat32;
  absl::Duration patience = absl::Seconds(120);  // with an unreachable ps
  int64_t examples = 1;                          // of a step, in all towers together
  absl::Duration sleep;                          // for trials: each step computes this much longer
  absl::Duration stall;  // for trials: every fourth step computes this much longer still
  const Clock* clock = Clock::Real();
};

// What a step uses. All of it outlives the runner.
struct StepParts {
  const VariableLayout* layout = nullptr;
  std::span<PsData* const> shards;  // shards[k] talks to ps k
  TowerGroup* towers = nullptr;
  GradientMemory* memory = nullptr;  // for the gradients; null: the heap
  Pipeline* data = nullptr;
  BatchRows* rows = nullptr;
  Progress* progress = nullptr;
  Timeline* timeline = nullptr;  // may be null
};

// Used by one thread.
class StepRunner {
 public:
  static absl::StatusOr<std::unique_ptr<StepRunner>> Create(const StepRunnerOptions& options,
                                                            const StepParts& parts);

  // What StepParts::memory should have: for every gradient, of a table with its most rows.
  static uint64_t GradientBytes(const VariableLayout& layout, std::span<const int64_t> most_rows);

  // Synchronous: the gradient of `step`, from its version and its data. Without one where the step
  // was committed meanwhile: it would be dropped. `dequeue_seq` is that of the token to go on with.
  absl::Status Run(GlobalStep step, DequeueSeq dequeue_seq);
  // That token, if it came with the verdicts; otherwise it is to be asked for.
  std::optional<DequeueTokenReply> TakeToken() { return joined_[kStepShard]->TakeToken(); }
  // Asynchronous: a gradient from the newest values and the data of step `batch`, stamped for each
  // shard with the version that came from there. Returns whether the step shard has applied its
  // last.
  absl::StatusOr<bool> RunNewest(GlobalStep batch);

 private:
  StepRunner(const StepRunnerOptions& options, const StepParts& parts);

  // The batches of a step, with their rows collected.
  absl::StatusOr<const std::vector<Batch>*> Read(GlobalStep batch);
  // Begins to bring what the step, a later one, needs.
  void FetchAhead(GlobalStep step);
  // From the variables that have been fetched, with stamps_. `number` seeds what is random. What
  // the shards said, by shard.
  absl::StatusOr<std::span<const PushSummary>> Push(const std::vector<Batch>& batches,
                                                    int64_t number, DequeueSeq dequeue_seq);
  void HoldPushes();
  // Whether a shard answers them when the step is over.
  bool ReleasePushes(DequeueSeq dequeue_seq);
  absl::Status Train(const std::vector<Batch>& batches, int64_t number);
  void SleepForTrials();
  // Lets the gradients of tables be of the rows that have been fetched.
  void BindRowGradients();
  // A gradient on its way: from the towers, and from the clipper.
  void Ready(std::span<const int> variables);
  void Send(int variable);

  const StepRunnerOptions options_;
  const StepParts parts_;
  std::vector<std::unique_ptr<JoinedCalls>> joined_;  // with parts_.shards
  std::vector<PsData*> shards_;                       // the same
  std::unique_ptr<VariableCache> variables_;
  // In the graph's order; kept until the next step, so that they can be sent again. A sparse one
  // has room for its most rows, a frozen one none.
  std::vector<Tensor> memory_;
  std::vector<MutableTensorView> gradients_;
  std::vector<GlobalStep> stamps_;  // of the gradient at hand, by shard
  GradientSender sender_;
  GradientClipper clipper_;  // in front of the sender
  // What was read last, and of which step.
  const std::vector<Batch>* batches_ = nullptr;
  GlobalStep batches_of_;
  PushSeq push_seq_;
};

}  // namespace lockstep::worker
