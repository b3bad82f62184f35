#include "common/base/lost_variables.h"

#include <catch2/catch.hpp>

#include "common/base/annotate.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

TEST_CASE("the answer of a ps without variables is told from every other, also by its text alone") {
  const absl::Status answer = NoVariablesError("no chief has called it since it was started");
  CHECK(IsNoVariables(answer));
  CHECK(IsNoVariables(Annotate(answer, "ps 1 (a:1)")));
  // What is left of it by a peer that knows no payloads.
  CHECK(IsNoVariables(absl::Status(answer.code(), answer.message())));
  CHECK(ExitCodeFor(answer) == ExitCode::kPeersLost);
  CHECK_FALSE(IsNoVariables(absl::OkStatus()));
  CHECK_FALSE(IsNoVariables(absl::FailedPreconditionError("worker 1 is not a member")));
  CHECK_FALSE(IsNoVariables(absl::InvalidArgumentError(answer.message())));
}

TEST_CASE("a caller names the ps that has lost its variables, and what a restart needs") {
  const absl::Status lost = LostVariablesError("ps 0 (127.0.0.1:6222)");
  CHECK(lost.message() ==
        "ps 0 (127.0.0.1:6222) was started again and has lost its variables. Remedy: start the "
        "chief with --resume: every ps goes back to the newest checkpoint; a job with a "
        "checkpoint.folder does so by itself");
  CHECK(ExitCodeFor(lost) == ExitCode::kPeersLost);
  CHECK_FALSE(IsNoVariables(lost));
  CHECK(HasLostVariables(lost));
  CHECK_FALSE(HasLostVariables(NoVariablesError("no chief has called it")));
}

}  // namespace
}  // namespace lockstep
