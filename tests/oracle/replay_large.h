// Dense scripts of kind training on a whole shard, with a variable of several chunks: the script's,
// repeated row by row, since every rule works element by element. Its gradients come as a worker's
// do: in messages, in shared memory, or in chunks that are applied before the rest has come.
#pragma once

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "tests/oracle/comparison.h"

namespace lockstep::oracle {

enum class GradientPath {
  kMessages,      // whole, copied out of the message
  kSharedMemory,  // whole, where the worker wrote it
  kEarlyChunks,   // in several messages, as far as each step takes as many gradients as the first
};

struct LargeReplay {
  Comparison comparison;
  int num_steps = 0;  // that were compared
};

// INVALID_ARGUMENT: a script that is sparse or not in float32.
absl::StatusOr<LargeReplay> ReplayLarge(const nlohmann::json& script, GradientPath path);

}  // namespace lockstep::oracle
