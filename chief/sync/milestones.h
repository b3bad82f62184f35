// At which versions the model is evaluated and saved. Pure.
#pragma once

#include "common/base/ids.h"

namespace lockstep::chief {

// Every so many steps (0: never), and at the end of the job.
struct Milestones {
  int64_t every_steps = 0;
  bool at_end = false;
  GlobalStep end;

  bool IsDue(GlobalStep version) const {
    if (version == end) return at_end;
    return every_steps > 0 && version.value() % every_steps == 0;
  }
};

}  // namespace lockstep::chief
