// From where the user wants a job to start.
#pragma once

#include <string>

#include "chief/checkpoint/start_mode.h"

namespace lockstep::chief {

struct StartChoice {
  StartMode mode = StartMode::kBegin;
  std::string folder;  // kRestore: of a checkpoint or of several; empty: the job's own
};

// What common/config/start_flags.h say; after CheckStartFlags.
StartChoice StartChoiceOfFlags();

}  // namespace lockstep::chief
