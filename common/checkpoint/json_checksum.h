// A checksum that a JSON file carries of itself, as one of its fields: CRC32C of the compact text
// without that field, keys sorted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"

namespace lockstep {

// Adds the field to the object. Text in it that is not UTF-8 loses its wrong bytes.
void AddChecksum(const char* field, nlohmann::json* json);

// Takes the field, which the object has, out of it. DATA_LOSS: the rest has another checksum.
absl::Status TakeChecksum(const char* field, nlohmann::json* json);

}  // namespace lockstep
