// TokenQueue makes the workers' requests for tokens repeatable, for any policy. A repeated call
// (worker, incarnation, dequeue_seq) gets the same token. A call repeated while it waits replaces
// the waiting one.
//
// Pure: the caller numbers the calls, and each method returns a list of answers. Not thread-safe.
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

  // A call parks if no answer has its number. FAILED_PRECONDITION: a newer call of this incarnation
  // has been seen. `newest_push`: as in TokenPolicy::Request. `token_step`: step of the caller's
  // newest token, if it sends it. A later token may have gone to an older call.
  Answers Dequeue(const DequeueKey& key, DequeueCall call, std::optional<GlobalStep> newest_push,
                  std::optional<GlobalStep> token_step = std::nullopt);
  // The live replicas, in ascending order. Waiting calls of others are answered ABORTED.
  Answers SetView(absl::Span<const std::pair<WorkerIndex, Incarnation>> members);
  Answers Commit(GlobalStep step);
  // No further step follows: calls that find no token get `done`.
  Answers Close();
  // Undoes Close, for another chief that wants more steps; `step` is the global step.
  Answers Reopen(GlobalStep step);
  // Answers all calls with `done`, now and later, even if tokens are left.
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
