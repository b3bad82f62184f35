// Where workers ask for tokens: makes the asking repeatable, whatever the policy. The same call
// again (worker, incarnation, dequeue_seq) gets the same token; issued again while it waits, it
// takes the place of the waiting one.
//
// Pure: calls are known by numbers of the caller's, and what a call answers comes back as a list.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/tokens/token_policy.h"

namespace lockstep::ps {

using DequeueCall = uint64_t;

struct DequeueKey {
  WorkerIndex worker;
  Incarnation incarnation;
  DequeueSeq dequeue_seq;
};

class TokenQueue {
 public:
  struct Answer {
    DequeueCall call;
    absl::StatusOr<GrantedToken> handout;  // UNAVAILABLE: another call took its place
  };
  using Answers = std::vector<Answer>;

  explicit TokenQueue(std::unique_ptr<TokenPolicy> policy) : policy_(std::move(policy)) {}

  // A call parks when no answer carries its number. FAILED_PRECONDITION: a newer call of this
  // incarnation has been seen. `newest_push`: as TokenPolicy::Request. `token_step`: of the newest
  // token that the caller has, where it tells: a later one may have gone to an older call.
  Answers Dequeue(const DequeueKey& key, DequeueCall call, std::optional<GlobalStep> newest_push,
                  std::optional<GlobalStep> token_step = std::nullopt);
  // The live replicas, in ascending order. Waiting calls of others are answered ABORTED.
  Answers SetView(absl::Span<const std::pair<WorkerIndex, Incarnation>> members);
  Answers Commit(GlobalStep step);
  // No further step: who finds no token is told that all is done.
  Answers Close();
  // Steps follow after all, for another chief that wants more; `step` is the global step.
  Answers Reopen(GlobalStep step);
  // Everybody is told so, tokens or not, now and later.
  Answers Finish();
  // Answers all waiting calls with `status`.
  Answers Drop(const absl::Status& status);

  int num_waiting() const;

 private:
  struct Replica {
    Incarnation incarnation;
    DequeueSeq newest;                    // 0: none yet
    std::optional<GrantedToken> handout;  // of the newest
    std::optional<DequeueCall> call;      // waits
  };

  Replica& ReplicaOf(WorkerIndex worker, Incarnation incarnation, Answers* answers);
  void Deliver(const GrantedTokens& granted, Answers* answers);

  const std::unique_ptr<TokenPolicy> policy_;
  absl::btree_map<WorkerIndex, Replica> replicas_;
  bool finished_ = false;
};

}  // namespace lockstep::ps
