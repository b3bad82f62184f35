// Which operations of a participant use the elements that its vector begins with. Where none of the
// others does, those elements can lie elsewhere and need not be copied into the vector.
#pragma once

#include <optional>
#include <vector>

#include "worker/collective/schedule.h"

namespace lockstep::worker {

// By operation of participant `rank`: whether it reads elements of the vector that no earlier one
// has written. nullopt: an operation reads both such elements and written ones, or no operation
// writes some element, which then ends as it begins.
std::optional<std::vector<bool>> FindFirstReads(const Schedule& schedule, int rank);

}  // namespace lockstep::worker
