// The values that a cluster script starts from, as a checkpoint that shards restore: initializers
// make only values of their own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"

namespace lockstep::oracle {

struct NamedValue {
  std::string name;
  Tensor value;
};

// Variables as the script says, slots and scalars as its optimizer begins. Returns the checkpoint's
// folder, below `root`.
absl::StatusOr<std::string> WriteInitialCheckpoint(const std::string& root,
                                                   const nlohmann::json& script);
// The same with these variables in place of the script's.
absl::StatusOr<std::string> WriteInitialCheckpoint(const std::string& root,
                                                   const nlohmann::json& script,
                                                   std::vector<NamedValue> variables);

}  // namespace lockstep::oracle
