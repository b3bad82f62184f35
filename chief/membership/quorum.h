// EvaluateQuorum decides whether the current step can still close with the present workers. Pure.
//
// With one token per replica, a replica pushes one gradient per step, so live replicas with data
// are counted. With a token queue, tokens are counted (tensorflow#20342). Each token of a step, and
// each start at it, allows one gradient with its local_step. A worker that leaves with a token
// takes it away. The remaining workers may push several times, so their number does not matter if
// there are as many tokens as the step needs gradients.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace lockstep::chief {

enum class OnShortage {
  kWait,    // for a successor
  kShrink,  // continue with one gradient per replica that can push, at least one
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
  uint32_t replicas = 0;     // of the job
  uint32_t able = 0;         // live and have data
  uint32_t out_of_data = 0;  // live, and push no more gradients
  // Of the current step: processes that began at it without a token; tokens lost with workers whose
  // data ended. Workers that died are not included: it is not known whether they had pushed.
  int64_t starts = 0;
  int64_t lost_tokens = 0;
  // All able workers wait for a token, none is left, and the step is open: a worker that died had a
  // token.
  bool stalled = false;
};

struct Quorum {
  // The most gradients that the step can get in all; 0 if no worker is able.
  int64_t possible = 0;
  bool is_short = false;
  uint32_t required = 1;  // for the grant of the step
  bool must_end = false;  // waiting is useless, or the policy is kAbort
};

Quorum EvaluateQuorum(const QuorumRules& rules, const ReplicaCounts& counts, GlobalStep step);

}  // namespace lockstep::chief
