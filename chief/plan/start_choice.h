// From where the user wants a job to start.
#pragma once

#include <string>

#include "chief/checkpoint/start_mode.h"

namespace lockstep::chief {

struct StartChoice {
  StartMode mode = StartMode::kBegin;
  // kRestore: of a checkpoint or of several; kResume: of a checkpoint. Empty: the job's own.
  std::string folder;
};

// What common/config/start_flags.h say; after CheckStartFlags.
StartChoice StartChoiceOfFlags();

}  // namespace lockstep::chief
