// Summarize describes the chief that commands a job, for a process's status.
#pragma once

#include <string>

#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep {

// `address`: of the chief whose index `status` has; empty: it is not known.
CommandSummary Summarize(const CommandStatus& status, const std::string& address);

}  // namespace lockstep
