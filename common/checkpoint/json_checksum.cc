#include "common/checkpoint/json_checksum.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checksum/crc32c.h"

namespace lockstep {
namespace {

std::string Canonical(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

uint32_t ChecksumOf(const nlohmann::json& json) {
  const std::string text = Canonical(json);
  return Crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

void AddChecksum(const char* field, nlohmann::json* json) {
  // Through the text once: what could not be written as it was must not count in the checksum.
  *json = nlohmann::json::parse(Canonical(*json), nullptr, false);
  (*json)[field] = ChecksumOf(*json);
}

absl::Status TakeChecksum(const char* field, nlohmann::json* json) {
  const nlohmann::json expected = json->at(field);
  json->erase(field);
  const uint32_t got = ChecksumOf(*json);
  if (expected == got) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("damaged or edited: CRC32C ", got, ", expected ", Canonical(expected)));
}

}  // namespace lockstep
