// The values that a cluster script starts from, as a checkpoint that shards restore: initializers
// make only values of their own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::oracle {

// Variables as the script says, slots and scalars as its optimizer begins. Returns the checkpoint's
// folder, below `root`.
absl::StatusOr<std::string> WriteInitialCheckpoint(const std::string& root,
                                                   const nlohmann::json& script);

}  // namespace lockstep::oracle
