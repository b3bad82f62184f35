// What a chief that starts does with what it finds: the choice among its flags.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace lockstep::chief {

// In every mode but kRestore a chief goes on from shards that have trained.
enum class StartMode {
  // Begins. Refused where checkpoints of an earlier run would be buried.
  kBegin,
  // --fresh. Begins. Checkpoints of earlier runs are set aside.
  kFresh,
  // --restore. Goes on from a checkpoint. Refused where shards have trained.
  kRestore,
  // --resume. Goes on from the newest checkpoint, or begins where there is none; so it does where
  // shards have trained that do not belong together.
  kResume,
  // --standby. Goes on from shards that have trained and belong together. Whatever else is found,
  // the start is planned afresh, as kResume: checkpoints have been written since.
  kSucceed,
};

// Where no shard has trained. FAILED_PRECONDITION with the remedies: a beginning would bury
// `earlier`, a checkpoint of an earlier run; empty: there is none.
absl::Status CheckBeginning(StartMode mode, const std::string& earlier);

}  // namespace lockstep::chief
