// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::deploy {

std::string WithCommas(uint64_t number);  // "12,345"
std::string BytesText(uint64_t bytes);    // "512 B", "1.2 MiB"
std::string SecondsText(double seconds);  // "0.4 s", "12 s", "3:05", "1:02:03"; "?" when unknown
std::string RateText(double per_second);  // "0.25", "12.3", "12,345"

}  // namespace lockstep::deploy
