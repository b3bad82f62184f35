// Who commands a job, as a process shows it.
#pragma once

#include <string>
#include <vector>

#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep {

// `chiefs`: addresses by index.
CommandSummary Summarize(const CommandStatus& status, const std::vector<std::string>& chiefs);

}  // namespace lockstep
