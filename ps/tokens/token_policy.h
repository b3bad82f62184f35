// TokenPolicy makes tokens and grants them to workers. A token is the permission to go on, stamped
// with a step: the local_step of the worker's next gradient.
//
// A policy knows replicas only by their index; TokenQueue handles repeated calls and incarnations.
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace lockstep::ps {

struct GrantedToken {
  WorkerIndex worker;
  GlobalStep step;    // of the token; 0 with `done`
  bool done = false;  // there are no more tokens

  friend bool operator==(const GrantedToken&, const GrantedToken&) = default;
};
using GrantedTokens = std::vector<GrantedToken>;

class TokenPolicy {
 public:
  virtual ~TokenPolicy() = default;

  // The worker wants a token; it does not wait for one yet. `newest_push` is the local_step of the
  // newest gradient that this incarnation sent, if known.
  virtual GrantedTokens Request(WorkerIndex worker, std::optional<GlobalStep> newest_push) = 0;
  // Called before Request: the newest token that the worker has is that of `step`. Tokens granted
  // later have not reached it, and can be granted again.
  virtual void SetToken(WorkerIndex worker, GlobalStep step) = 0;
  // The worker no longer waits. It has received nothing.
  virtual void Withdraw(WorkerIndex worker) = 0;
  // A new incarnation takes the place of this replica, which no longer waits.
  virtual void Succeed(WorkerIndex worker) = 0;
  // The global step has moved to `step`.
  virtual GrantedTokens Commit(GlobalStep step) = 0;
  // Makes no more tokens. Workers that still wait get `done`.
  virtual GrantedTokens Close() = 0;
  // Undoes Close: makes tokens again, beginning with those that the commit of `step` would have
  // made. Does nothing if not closed.
  virtual GrantedTokens Reopen(GlobalStep step) = 0;
};

// PER_REPLICA: every replica has one token. At each commit the token is set to the new global step,
// spent or not. So no replica is granted a stale token, or one for a step into which it has pushed.
// Before the first commit there are no tokens: workers start with local_step `start`. The token of
// a dead replica waits for its successor.
std::unique_ptr<TokenPolicy> MakePerReplicaTokens(GlobalStep start);

// FIFO: exactly TensorFlow's token queue. It makes `initial` tokens stamped `start`, then
// `tokens_per_step` at each commit, and serves calls in order. One worker may take several tokens
// of one step. After Close it grants the remaining tokens.
std::unique_ptr<TokenPolicy> MakeFifoTokens(GlobalStep start, int64_t initial,
                                            int64_t tokens_per_step);

// TensorFlow's numbers for a FIFO queue: max(total, A) tokens per step, and A at the start unless
// init_tokens is given (-1: not given; any other number below 1: no tokens). INVALID_ARGUMENT:
// fewer initial tokens than A - total, with which the first step could never close.
struct FifoCounts {
  int64_t initial = 0;
  int64_t per_step = 0;
};
absl::StatusOr<FifoCounts> CountFifoTokens(int64_t total_num_replicas,
                                           int64_t replicas_to_aggregate, int64_t init_tokens);

}  // namespace lockstep::ps
