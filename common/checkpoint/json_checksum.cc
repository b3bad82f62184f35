#include "common/checkpoint/json_checksum.h"

#include <nlohmann/json.hpp>
#include <span>

#include "common/checkpoint/crc32c.h"

namespace lockstep {

std::string CanonicalJson(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

uint32_t JsonChecksum(const nlohmann::json& json) {
  const std::string text = CanonicalJson(json);
  return Crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace lockstep
