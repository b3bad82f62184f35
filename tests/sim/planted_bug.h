// Ps that break one rule of the protocol, so that tests can tell whether the simulator finds that.
// The rule is broken between the network and the real shard.
#pragma once

#include <cstdint>
#include <memory>

#include "common/client/ps_control.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

enum class PlantedBug : uint8_t {
  kNone,
  kDoubleApply,  // a push that arrives again counts again
  kLostToken,    // one token leaves the queue and reaches nobody
  kSharedTerm,   // another chief may use the term of the one that set it
  kOldView,      // a view with an older number is accepted
  // A ps that is started again makes its variables anew in the epoch that the others are in.
  kSplitStep,
  // A gradient of an earlier epoch is accepted as one of the worker's process of now.
  kStaleAfterRestore,
  // A shard's file of a checkpoint has zeros for bytes until the shard saves the next time.
  kManifestBeforeShard,
  // Of jobs with copies of shards (planted_copy_bug.h).
  kShownBeforeCopy,  // a primary shows a step before its copy has its means
  kForgottenMean,    // a copy says that it has taken a mean, and has not
  kUnfencedPrimary,  // a copy that serves still takes the means of the ps before it, and drops them
  kLostState,        // a new copy gets zeros for state
};

// What a ps task was told last, whichever process it was then.
struct LastCommands {
  SetViewRequest view;
  CreateVariablesRequest create;
};

// `ps` with the bug, a process of a task. What is pointed to outlives them.
std::unique_ptr<PsControl> MakeFaultyControl(PsControl* ps, PlantedBug bug, LastCommands* last);
std::unique_ptr<PsData> MakeFaultyData(PsData* ps, PlantedBug bug, const LastCommands* last);

}  // namespace lockstep::sim
