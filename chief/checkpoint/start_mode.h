// StartMode is the kind of start that the flags of a chief choose.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace lockstep::chief {

// In every mode but kRestore a chief continues from shards that have trained.
enum class StartMode {
  // Begins at step 0. Refused if the folder has checkpoints of an earlier run.
  kBegin,
  // --fresh. Begins at step 0. Checkpoints of earlier runs are set aside.
  kFresh,
  // --restore. Continues from a checkpoint. Refused if shards have trained.
  kRestore,
  // --resume. Continues from the newest checkpoint, or begins if there is none. It does the same if
  // shards have trained but do not belong together.
  kResume,
  // --standby. Continues from shards that have trained and belong together. In every other case
  // the start is planned again, as kResume, because checkpoints have been written since.
  kSucceed,
};

// For a start where no shard has trained. FAILED_PRECONDITION with the remedies if the mode is
// kBegin and `earlier`, a checkpoint of an earlier run, exists. Empty: there is none.
absl::Status CheckBeginning(StartMode mode, const std::string& earlier);

}  // namespace lockstep::chief
