// Breadth-first search of every state that a configuration can reach: all orders in which messages
// arrive, are lost, late or repeated, and in which processes die and chiefs take over. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "tests/model/rules.h"
#include "tests/model/transitions.h"

namespace lockstep::model {

struct SearchResult {
  size_t states = 0;  // found until the end of the search
  Law broken = Law::kNone;
  // The fewest events that break the law, one a line, and the law. Empty if none is broken.
  std::string counterexample;
};

// Ends at the first event that breaks a law. If none does, looks for a state from which the job
// cannot finish even when all links are healed, nobody dies and only the newest chief acts.
SearchResult Search(const Configuration& configuration);

// The same, but looks for `law` alone and continues past events that break others.
SearchResult SearchFor(Law law, const Configuration& configuration);

}  // namespace lockstep::model
