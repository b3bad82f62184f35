// What the user can do about an error, added where that is known.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// "<message>. Remedy: <remedy>", with the status's code and payloads. A success, and an error that
// has a remedy, stay as they are.
absl::Status AddRemedy(const absl::Status& status, absl::string_view remedy);

// The same, and in place of the remedy that the error has.
absl::Status SetRemedy(const absl::Status& status, absl::string_view remedy);

}  // namespace lockstep
