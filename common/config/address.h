// "host:port" as a cluster spec has it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

struct Address {
  std::string host;  // lower case; IPv6 without brackets
  int port = 0;      // 1 .. 65535

  // "host:port", IPv6 in brackets and in its shortest form.
  std::string ToString() const;
};

// INVALID_ARGUMENT saying what is wrong with `text`. Names are not resolved.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

}  // namespace lockstep
