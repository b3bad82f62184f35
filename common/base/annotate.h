// Another message for a status, without losing what else it carries: its code and its payloads,
// such as the exit code of exit_code.h.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// "<where>: <message>". A success stays as it is.
absl::Status Annotate(const absl::Status& status, absl::string_view where);

// `message` instead of the status's own. A success stays as it is.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

}  // namespace lockstep
