// Ps of a job with copies that break one rule of their protocol (PlantedBug).
#pragma once

#include <memory>

#include "ps/shard/copy_target.h"
#include "tests/sim/planted_bug.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

// As a primary calls `copy`; `copy` itself where that is not where the bug is.
std::shared_ptr<ps::CopyTarget> MakeFaultyTarget(std::shared_ptr<ps::CopyTarget> copy,
                                                 PlantedBug bug);
// As the copy is called; null where that is not where the bug is. `ps` outlives it.
std::unique_ptr<PsData> MakeFaultyCopy(PsData* ps, PlantedBug bug);

}  // namespace lockstep::sim
