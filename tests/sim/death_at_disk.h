// kill -9 of a simulated process in the middle of a file operation. What it has written stays as
// the disk has it at that moment.
#pragma once

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "tests/sim/trace.h"

namespace lockstep::sim {

struct DeathAtDisk {
  // Of the operations below `folder` in one piece of work, from 1.
  int operation = 1;
  // Starts the process again, sometime.
  std::function<void()> died;
};

// Does the work. True: the process has died in it, which is noted; all that it wanted of the disk
// afterwards has failed.
bool DiesAtDisk(const DeathAtDisk& death, const std::string& folder, Trace* trace,
                absl::FunctionRef<void()> work);
// Within such work: the process is dead already, and nothing that it does is to be seen.
bool IsDyingAtDisk();

}  // namespace lockstep::sim
