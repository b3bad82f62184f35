#include "deploy/cli/stop_text.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

StopReply Stopped(int64_t step) {
  StopReply reply;
  reply.set_global_step(step);
  reply.set_exit_code(130);
  return reply;
}

TEST_CASE("a job that was stopped tells its step, and what is saved of it") {
  StopReply reply = Stopped(1057);
  reply.set_checkpoint("/c/ckpt-1057");
  reply.set_checkpoint_step(1057);
  CHECK(StopText(reply) ==
        "the job has ended at step 1,057\ncheckpoint of step 1,057: /c/ckpt-1057\n");
  CHECK(StopWarning(reply).empty());

  StopReply unsaved = Stopped(57);
  unsaved.set_save_error("the job has no checkpoint folder");
  CHECK(StopText(unsaved) == "the job has ended at step 57\n");
  CHECK(StopWarning(unsaved) == "the last step is not saved: the job has no checkpoint folder");
}

TEST_CASE("a job that had another end is not said to have been stopped") {
  StopReply reply = Stopped(60);
  reply.set_exit_code(0);
  CHECK(StopText(reply) == "the job was done\n");
  reply.set_exit_code(138);
  reply.set_reason("too few workers\x1b[2J");
  CHECK(StopText(reply) ==
        "the job was ending already, with exit code 138: too few workers\\x1b[2J\n");
}

TEST_CASE("whoever is no chief is named, with the remedy") {
  ProcessStatus status;
  status.set_role("chief");
  CHECK(CheckIsChief("host:1", status).ok());
  status.set_role("worker");
  status.set_task(3);
  const absl::Status error = CheckIsChief("host:1", status);
  CHECK(ExitCodeFor(error) == ExitCode::kUsage);
  CHECK_THAT(std::string(error.message()),
             Contains("host:1 is worker 3, and not the chief. Remedy: the address of the chief"));
}

TEST_CASE("a chief that stands by names the chief that can end the job") {
  ProcessStatus status;
  status.set_role("chief");
  status.mutable_standby_of()->set_state("held");
  status.mutable_standby_of()->set_chief(1);
  status.mutable_standby_of()->set_address("host:2\x1b");
  const absl::Status error = CheckIsChief("host:1", status);
  CHECK(ExitCodeFor(error) == ExitCode::kUsage);
  CHECK(error.message() ==
        "host:1 is chief 0, which stands by for chief 1 (host:2\\x1b). Remedy: the same "
        "command with host:2\\x1b");

  // It may command by the next call, which says so otherwise.
  status.mutable_standby_of()->set_state("expired");
  CHECK(CheckIsChief("host:1", status).ok());
  status.mutable_standby_of()->set_state("held");
  status.mutable_standby_of()->clear_address();
  CHECK(CheckIsChief("host:1", status).ok());
}

TEST_CASE("a chief that ends is told from one that is not there") {
  CHECK(IsEnding(absl::UnavailableError("task (host:1) is not available: the chief is stopping")));
  CHECK(IsEnding(absl::CancelledError("task (host:1)")));
  CHECK_FALSE(IsEnding(absl::UnavailableError("task (host:1) is not available: refused")));
  CHECK_FALSE(IsEnding(absl::OkStatus()));
}

TEST_CASE("nobody is told that the job of a chief that exits has ended") {
  CHECK(EndingText() == "the chief exits; its log says whether the job has ended\n");
}

TEST_CASE("what the user can do follows from how the call failed") {
  const absl::Status away = NoChiefError(absl::UnavailableError("task (host:1) is not available"));
  CHECK(ExitCodeFor(away) == ExitCode::kPeersLost);
  CHECK_THAT(std::string(away.message()),
             Contains("host:1") && Contains("Remedy: if the job runs, the address of the chief"));
  const absl::Status other = NoChiefError(absl::UnimplementedError("serves no GetStatus"));
  CHECK(ExitCodeFor(other) == ExitCode::kUsage);
  CHECK(ExitCodeFor(StopError(absl::UnimplementedError("serves no Stop"))) == ExitCode::kUsage);

  const absl::Status refused = StopError(
      absl::PermissionDeniedError("reader may not call Stop. Remedy: docs/security.md lists it"));
  CHECK(ExitCodeFor(refused) == ExitCode::kNotPermitted);
  CHECK_THAT(std::string(refused.message()),
             EndsWith("--role=operator makes, or an operator's certificate"));
  const absl::Status gone = StopError(absl::UnavailableError("chief (host:1) is not available"));
  CHECK(ExitCodeFor(gone) == ExitCode::kPeersLost);
  CHECK_THAT(std::string(gone.message()), Contains("its log says"));
  const absl::Status full = absl::ResourceExhaustedError("too many. Remedy: wait");
  CHECK(StopError(full) == full);
  CHECK(NoChiefError(absl::UnauthenticatedError("none. Remedy: --token_file=FILE")).message() ==
        "none. Remedy: --token_file=FILE");
}

}  // namespace
}  // namespace lockstep::deploy
