// The flags that say from where a job starts, the same for the chief and for `lockstep up`:
//   --resume           goes on from the shards, else from the newest checkpoint, else begins
//   --restore[=FOLDER] goes on from a checkpoint: of the job's folder, or the one named
//   --fresh            begins, even where there are checkpoints of earlier runs
// At most one of them.
#pragma once

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"

ABSL_DECLARE_FLAG(bool, resume);
ABSL_DECLARE_FLAG(bool, fresh);
ABSL_DECLARE_FLAG(std::string, restore);

namespace lockstep {

// The value of --restore that is given without one: the newest checkpoint of the job's folder.
inline constexpr char kNewestCheckpoint[] = "latest";

// A command line for HandleFlags, where --restore may stand without a value. Views into `argv`.
std::vector<const char*> WithNewestCheckpoint(int argc, char** argv);

// A usage error (64) for more than one of the flags.
absl::Status CheckStartFlags();

}  // namespace lockstep
