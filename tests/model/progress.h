// Progress once all links are healed and no process dies any more. Pure.
#pragma once

#include "tests/model/rules.h"
#include "tests/model/transitions.h"

namespace lockstep::model {

// True if all steps are committed at the member that the newest chief has decided on.
bool IsFinished(const Configuration& configuration, const State& state);

// True if the newest chief cannot know that a living member has all committed steps. It goes back
// to the checkpoint, in a new epoch. Never true while both members live.
bool MustGoBack(const Configuration& configuration, const State& state);

// True if the event happens when nothing fails: only the newest chief acts, and suspects the dead.
bool HappensWhenHealed(const Configuration& configuration, const State& state, const Event& event);

}  // namespace lockstep::model
