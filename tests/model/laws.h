// Laws that hold in every run, whatever fails. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "tests/model/state.h"

namespace lockstep::model {

enum class Law : uint8_t {
  kNone,
  kOneValuePerVersion,  // workers train on one value of each version, and fetch no other
  kPublishedOnce,       // two members never publish different sums as one version
  kOneLeader,           // two members never serve alone
  kSummedOnce,          // no gradient is summed twice
  kCommittedStaysTrue,  // the leader has every committed step
  kJobCanFinish,        // once nothing fails any more, it finishes or must go back to a checkpoint
};

std::string Describe(Law law);

// Commits the steps before `version` at `leader`, a member of `state`: it answers their tokens.
// Returns the law that this breaks.
Law CommitAt(int version, Member* leader, State* state);

// Returns the law that `leader` breaks when it starts to lead without `other`.
Law LawOfLeader(const State& state, const Member& leader, const Member& other);

// Returns the law that breaks when a worker fetches values from `member` while it trains on `step`.
Law LawOfValues(const State& state, const Member& member, int step);

}  // namespace lockstep::model
