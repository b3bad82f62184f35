// The shards of a job as training uses them: each gradient goes to all of them, divided into the
// parts that each holds, and is complete when all have judged it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/fan_in.h"
#include "common/base/gate.h"
#include "common/base/timer.h"
#include "common/client/shard_session.h"
#include "common/tensor/tensor_maker.h"
#include "common/transport/tensor_transport.h"
#include "worker/cache/variable_cache.h"
#include "worker/cache/variable_layout.h"
#include "worker/strategy/update_strategy.h"

namespace lockstep::worker {

// Adds what the shards say of a gradient.
void AddVerdicts(std::span<const PushSummary> summaries, StepOutcome* outcome);

struct ShardGroupOptions {
  // Of each session, but for what follows from the rest.
  SessionOptions session;
  // Each replica gets a token of its own (PER_REPLICA): a gradient that is one message may wait for
  // the end of the step (SessionOptions::most_fused_bytes).
  bool token_per_replica = false;
  // The towers read a ps's values in its own memory, where that can be had. A version may be
  // overwritten meanwhile, but never before every shard has closed its step: then the gradient is
  // stale everywhere. Not for an asynchronous job, where nothing says so.
  bool values_in_place = false;
  std::vector<std::string> shard_names;  // "ps 1 (host:port)", for messages
  // By variable, how many rows a step names at most, as VariableCache::Create takes it.
  std::vector<int64_t> most_rows;
  // Another ps may come to serve a shard: it gets the last gradient again until the next token.
  bool shards_may_move = false;
};

// What the sessions work with. All of it outlives them.
struct ShardGroupResources {
  std::span<TensorTransport* const> shards;  // shards[k] talks to ps k
  Timer* timer = nullptr;
  const Clock* clock = Clock::Real();
  TensorMaker make_tensor = OnHeap;  // of values, and of gradients that are not shared
};

// Used by one thread, or handed from one to the next, but for what says otherwise. One gradient at
// a time: Begin, Add until each variable that gets a gradient in the step was named once, End.
class ShardGroup {
 public:
  // The layout outlives the group. Errors as VariableCache::Create.
  static absl::StatusOr<std::unique_ptr<ShardGroup>> Create(const ShardGroupOptions& options,
                                                            const VariableLayout& layout,
                                                            const ShardGroupResources& resources);
  ~ShardGroup();

  // Its values come over the sessions of the group.
  VariableCache& cache() { return *cache_; }

  // Learns which shards share memory with this worker, where that decides the type on the wire:
  // otherwise a run would depend on when the answer comes. Tells nothing.
  void Open(Callback<bool> done);

  // local_steps[k] is the version of shard k that the gradient is computed from. `step`: whose
  // variables get gradients.
  void Begin(PushSeq push_seq, GlobalStep step, std::span<const GlobalStep> local_steps);
  // The gradients of these variables are final: they are sent as far as the window allows. They
  // stay unchanged until the callback of End, with shards_may_move until that of AwaitToken.
  void Add(std::span<const int> variables, std::span<const MutableTensorView> gradients);
  // Whether a shard will answer End only when the step is over.
  bool HoldsGradient() const;
  // After End: whether a shard may lack a part of the gradient, or has not judged it, and does not
  // wait for the end of the step with all of it. Thread-safe.
  bool OwesGradient() const;
  // `done` gets what the shards say when all of them have judged the gradient. The step shard's
  // answer brings the token of `dequeue_seq`, if it came along; 0: none is requested.
  void End(DequeueSeq dequeue_seq, Callback<std::span<const PushSummary>> done);
  // `done` gets the token that came along with the gradient, or where there is none, the next one
  // of the step shard after that of `token_step`. Once a shard refuses the gradient or cannot be
  // sent it, also again after a move, End and AwaitToken end with its error, and all other calls
  // with CANCELLED.
  void AwaitToken(DequeueSeq dequeue_seq, GlobalStep token_step,
                  std::optional<DequeueTokenReply> came_along, Callback<DequeueTokenReply> done);

  // Ends all calls, and later ones at once. Thread-safe.
  void Cancel();

 private:
  ShardGroup(const ShardGroupOptions& options, const VariableLayout& layout,
             const ShardGroupResources& resources);
  // The step is over: its gradients may be changed after `done`.
  void ForgetGradient(DequeueTokenReply token, Callback<DequeueTokenReply> done);
  // No step can end any more.
  void Fail(const absl::Status& failure);
  absl::Status failure() const;
  void AddPart(const WholeVariable& variable, const VariablePart& part, const TensorView& values);
  // A part without rows is sent as an empty gradient: the shard counts gradients, not rows.
  void AddRows(const WholeVariable& variable, const PartRows& rows, const TensorView& gradient);

  const ShardGroupOptions options_;
  const VariableLayout& layout_;
  FanIn<int> opened_;            // by shard
  FanIn<int> forgotten_;         // by shard
  FanIn<PushSummary> verdicts_;  // by shard, of the gradient under way or the last
  Callback<std::span<const PushSummary>> judged_;
  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Gate failing_;  // held by Fail, which uses all sessions
  std::unique_ptr<VariableCache> cache_;
  std::vector<std::unique_ptr<ShardSession>> sessions_;  // by shard; fill and tell all above
};

}  // namespace lockstep::worker
