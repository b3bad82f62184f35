// Whether the step at hand can still close, given who is there. Pure.
//
// With one token per replica a replica gives a step one gradient, so replicas are counted: those
// that live and have data. With a token queue tokens are counted (tensorflow#20342): each token of
// a step, and each start at it, allows one gradient with its local_step, and a worker that leaves
// with one takes it away. Those who are left may push several times, so it does not matter how many
// they are, as long as there are as many tokens as the step needs gradients.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace lockstep::chief {

enum class OnShortage {
  kWait,    // for a successor
  kShrink,  // go on with as many gradients as there are replicas that can push, at least one
  kAbort,   // end the job
};

struct QuorumRules {
  OnShortage on_shortage = OnShortage::kWait;
  uint32_t aggregate = 1;      // gradients that a step needs
  bool counts_tokens = false;  // a token queue; then not kShrink
  // Tokens of the first step, and of each step after it.
  GlobalStep start;
  int64_t initial_tokens = 0;
  int64_t tokens_per_step = 0;
};

struct ReplicaCounts {
  uint32_t replicas = 0;     // that the job has
  uint32_t able = 0;         // live and have data
  uint32_t out_of_data = 0;  // live, and push no more gradients
  // Of the step at hand: processes that began at it, without a token; tokens that went with
  // workers whose data ended. A worker that died is not among these: whether it had pushed nobody
  // knows.
  int64_t starts = 0;
  int64_t lost_tokens = 0;
  // Everybody who is able waits for a token, there is none, and the step is open: then a token went
  // with somebody who died.
  bool stalled = false;
};

struct Quorum {
  // Gradients that the step can have in all, at most; 0 when nobody is able.
  int64_t possible = 0;
  bool is_short = false;
  uint32_t required = 1;  // for the grant of the step
  bool must_end = false;  // there is nothing to wait for, or it is not wanted
};

Quorum EvaluateQuorum(const QuorumRules& rules, const ReplicaCounts& counts, GlobalStep step);

}  // namespace lockstep::chief
