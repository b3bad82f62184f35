#include "common/base/exit_code.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("Each canonical code has its exit code") {
  struct Case {
    absl::Status status;
    int code;
  };
  for (const Case& c : {
           Case{absl::OkStatus(), 0},
           Case{absl::InvalidArgumentError("x"), 78},
           Case{absl::FailedPreconditionError("x"), 78},
           Case{absl::AlreadyExistsError("x"), 78},
           Case{absl::OutOfRangeError("x"), 78},
           Case{absl::NotFoundError("x"), 66},
           Case{absl::DataLossError("x"), 65},
           Case{absl::AbortedError("x"), 80},
           Case{absl::UnavailableError("x"), 138},
           Case{absl::DeadlineExceededError("x"), 138},
           Case{absl::ResourceExhaustedError("x"), 138},
           Case{absl::PermissionDeniedError("x"), 77},
           Case{absl::UnauthenticatedError("x"), 77},
           Case{absl::CancelledError("x"), 143},
           Case{absl::InternalError("x"), 70},
           Case{absl::UnknownError("x"), 70},
           Case{absl::UnimplementedError("x"), 70},
       }) {
    CAPTURE(c.status.ToString());
    CHECK(static_cast<int>(ExitCodeFor(c.status)) == c.code);
  }
}

TEST_CASE("A code set by hand wins, survives copies and leaves the status as it was") {
  const absl::Status status =
      WithExitCode(absl::InvalidArgumentError("bad flag"), ExitCode::kUsage);
  const absl::Status copy = status;
  CHECK(ExitCodeFor(copy) == ExitCode::kUsage);
  CHECK(copy.code() == absl::StatusCode::kInvalidArgument);
  CHECK(copy.message() == "bad flag");
  CHECK(ExitCodeFor(WithExitCode(copy, ExitCode::kDiverged)) == ExitCode::kDiverged);
  // A success stays one.
  CHECK(ExitCodeFor(WithExitCode(absl::OkStatus(), ExitCode::kBug)) == ExitCode::kDone);
}

TEST_CASE("A mistake on the command line ends a program with 64, a success with 0") {
  CHECK(UsageError("--x: unknown").code() == absl::StatusCode::kInvalidArgument);
  CHECK(PrintFailure("program", UsageError("--x: unknown")) == 64);
  CHECK(PrintFailure("program", absl::OkStatus()) == 0);
}

}  // namespace
}  // namespace lockstep
