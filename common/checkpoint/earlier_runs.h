// The checkpoints of earlier runs that a new run finds in its folder.
//
// A library of its own: only a chief that starts needs it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/fs/atomic_file.h"

namespace lockstep {

// The folder of a checkpoint that exists in `root` (its manifest does): the one that LATEST names,
// or the one of the highest step. Empty: there is none, or no `root`. Nothing is verified: a
// damaged checkpoint must not be buried either.
absl::StatusOr<std::string> FindCheckpoint(const std::string& root);

// Moves every checkpoint of `root`, LATEST and what unfinished saves have left into a new folder
// <root>/earlier-<n>, which is a root like any other, and returns its path. The newest is moved
// last: after a crash what is left can still be continued. Only before a run trains; one caller.
// `check` is asked before each move: its error ends it.
absl::StatusOr<std::string> SetAsideCheckpoints(const std::string& root,
                                                const PublishCheck& check = nullptr);

// The highest epoch that anybody has had in `root`: of its checkpoints and of its owner, which
// is as high as that of each checkpoint. 0: there is none, or no `root`. DATA_LOSS for an owner
// that cannot be read. Without an owner also the error of a manifest that is whole, for all that is
// known, and does not tell its epoch: later, or to another build, it may.
absl::StatusOr<uint64_t> HighestEpoch(const std::string& root);

}  // namespace lockstep
