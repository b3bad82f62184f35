// A process's status as a compact table for a terminal.
#pragma once

#include <string>

#include "proto/status.pb.h"

namespace lockstep::deploy {

std::string StatusTable(const ProcessStatus& status);

}  // namespace lockstep::deploy
