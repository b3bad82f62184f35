// As whom a primary calls its copy, in place of a worker: docs/protocol.md, "Copies".
#pragma once

#include "common/base/ids.h"

namespace lockstep {

inline constexpr WorkerIndex kPrimaryWorker(0);
// No process has it.
inline constexpr Incarnation kPrimaryIncarnation(1);

}  // namespace lockstep
