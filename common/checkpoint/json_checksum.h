// A checksum that a JSON file carries of itself.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep {

// Compact, keys sorted, UTF-8. Text that is not UTF-8 loses its wrong bytes.
std::string CanonicalJson(const nlohmann::json& json);

// CRC32C of the canonical text.
uint32_t JsonChecksum(const nlohmann::json& json);

}  // namespace lockstep
