// The scripts that tests/oracle/record.py writes: what was asked of TensorFlow and what it
// answered. record.py describes their fields.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::oracle {

struct Script {
  std::string place;  // "training.jsonl.gz:3 (training_adam_dense_0)", "some.json"
  std::string kind;   // "training", "cluster", ...; empty where it says none
  std::string about;  // kind, optimizer and way: "training adam sparse", "schedule"
  nlohmann::json content;
};

// All scripts of a folder, by file and line: *.json with one script each, *.jsonl and *.jsonl.gz
// with one a line. NOT_FOUND where there is none; DATA_LOSS naming file and line for what is not a
// JSON object.
absl::StatusOr<std::vector<Script>> ReadScripts(const std::string& folder);

}  // namespace lockstep::oracle
