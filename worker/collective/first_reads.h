// FindFirstReads finds the operations of a participant that read initial elements of its vector. If
// no other operation does, these elements may lie elsewhere: no copy into the vector is needed.
#pragma once

#include <optional>
#include <vector>

#include "worker/collective/schedule.h"

namespace lockstep::worker {

// By operation of participant `rank`: true if it reads elements of the vector that no earlier
// operation has written. nullopt: an operation reads both such elements and written ones, or some
// element is never written, so that its initial value is also its result.
std::optional<std::vector<bool>> FindFirstReads(const Schedule& schedule, int rank);

}  // namespace lockstep::worker
