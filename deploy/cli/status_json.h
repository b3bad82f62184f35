// A process's status as JSON for programs.
#pragma once

#include <string>

#include "proto/status.pb.h"

namespace lockstep::deploy {

// One object with the fields' names of proto/status.proto, each of which docs/status.md explains.
// Numbers are JSON numbers, those of 64 bits too. A number that is not finite is null. A message
// that the process does not have (a ps has no "job") is left out; everything else is there, also
// when it is 0 or empty. Ends with a newline.
std::string StatusJson(const ProcessStatus& status);

}  // namespace lockstep::deploy
