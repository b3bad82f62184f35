// Adds to an error the action by which the user can correct it, where that is known.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// "<message>. Remedy: <remedy>", with the status's code and payloads. A success, and an error that
// has a remedy, stay as they are.
absl::Status AddRemedy(const absl::Status& status, absl::string_view remedy);

// The same, but replaces the remedy of an error that has one.
absl::Status SetRemedy(const absl::Status& status, absl::string_view remedy);

}  // namespace lockstep
