#include "common/base/lost_variables.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

// docs/protocol.md promises this text to clients in other languages.
constexpr absl::string_view kNoVariables = "this ps has no variables";
constexpr absl::string_view kLostVariables = "was started again and has lost its variables";

}  // namespace

absl::Status NoVariablesError(absl::string_view why) {
  return WithExitCode(absl::FailedPreconditionError(absl::StrCat(kNoVariables, ": ", why)),
                      ExitCode::kPeersLost);
}

bool IsNoVariables(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), kNoVariables);
}

absl::Status LostVariablesError(absl::string_view ps) {
  return WithExitCode(
      absl::FailedPreconditionError(absl::StrCat(
          ps, " ", kLostVariables,
          ". Remedy: start the chief with --resume: every ps goes back to the newest checkpoint; a "
          "job with a checkpoint.folder does so by itself")),
      ExitCode::kPeersLost);
}

bool HasLostVariables(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), kLostVariables);
}

bool LacksVariables(const absl::Status& status) {
  return IsNoVariables(status) || HasLostVariables(status);
}

}  // namespace lockstep
