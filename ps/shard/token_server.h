// The step shard's: the global step, the tokens, and the dequeues that wait for them.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/replicas/replica_view.h"
#include "ps/shard/calls.h"
#include "ps/shard/deferred_callbacks.h"
#include "ps/tokens/token_queue.h"

namespace lockstep::ps {

// Guarded by the shard's lock.
class TokenServer {
 public:
  TokenServer(std::unique_ptr<TokenPolicy> policy, GlobalStep start)
      : queue_(std::move(policy)), global_step_(start) {}

  GlobalStep global_step() const { return global_step_; }
  // Whose answers go to Answer.
  TokenQueue* queue() { return &queue_; }
  void Answer(TokenQueue::Answers answers, DeferredCallbacks* deferred);
  // Of a copy that becomes the primary: so many steps are committed.
  void Restore(GlobalStep committed, DeferredCallbacks* deferred);
  // `newest_push`: as TokenPolicy::Request.
  void Dequeue(const DequeueArguments& arguments, std::optional<GlobalStep> newest_push,
               Callback<Token> done, DeferredCallbacks* deferred);
  // The tokens of this version ask workers to store it.
  void AskToStore(GlobalStep version, bool slots) {
    to_store_ = version;
    stores_slots_ = slots;
  }
  // From now on a token tells its replica's share of the step.
  void SetReplicaViews(ReplicaViews views) { replica_views_ = std::move(views); }
  // FAILED_PRECONDITION: the shard, which is at `shard_step`, has not closed the step, or the job
  // is not there yet.
  absl::Status Commit(GlobalStep step, bool last, GlobalStep shard_step,
                      DeferredCallbacks* deferred);

 private:
  // What the token's replica takes of the step; none where the job has no replica views.
  std::optional<ReplicaShare> ShareOf(const GrantedToken& token, GlobalStep step) const;

  TokenQueue queue_;
  GlobalStep global_step_;
  ReplicaViews replica_views_;
  std::optional<GlobalStep> to_store_;  // the last such version
  bool stores_slots_ = false;
  DequeueCall last_dequeue_ = 0;
  absl::flat_hash_map<DequeueCall, Callback<Token>> dequeues_;
};

}  // namespace lockstep::ps
