// A ps that was started again has lost its variables: how it says so, and how its callers tell.
//
// The ps knows only that it has none. Its callers know that the chief had created them: a chief
// sends no command, and a worker does not exist for a job, before that.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// What a ps answers to a call that needs variables: FAILED_PRECONDITION with `why`, exit code 138.
absl::Status NoVariablesError(absl::string_view why);

// Whether `status` is that answer, also after it has crossed the wire and been annotated.
bool IsNoVariables(const absl::Status& status);

// What the caller makes of that answer: FAILED_PRECONDITION that names the ps ("ps 1 (host:port)")
// and the remedy, exit code 138. IsNoVariables is false for it.
absl::Status LostVariablesError(absl::string_view ps);

// Whether `status` is what LostVariablesError makes.
bool HasLostVariables(const absl::Status& status);

// Whether `status` is either of the two.
bool LacksVariables(const absl::Status& status);

}  // namespace lockstep
