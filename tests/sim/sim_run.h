// One run of a scenario: what is wrong with its ps on purpose, and what happened.
#pragma once

#include "tests/sim/planted_bug.h"
#include "tests/sim/trace.h"

namespace lockstep::sim {

struct SimRun {
  PlantedBug planted = PlantedBug::kNone;
  Trace trace;
};

}  // namespace lockstep::sim
