#include "common/base/annotate.h"

#include <catch2/catch.hpp>

#include "absl/strings/cord.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

TEST_CASE("An annotated status says where and keeps its code and its payloads") {
  absl::Status status = WithExitCode(absl::NotFoundError("no such file"), ExitCode::kCannotCreate);
  status.SetPayload("other", absl::Cord("kept"));
  const absl::Status annotated = Annotate(Annotate(status, "inner"), "outer");
  CHECK(annotated.code() == absl::StatusCode::kNotFound);
  CHECK(annotated.message() == "outer: inner: no such file");
  CHECK(ExitCodeFor(annotated) == ExitCode::kCannotCreate);
  CHECK(annotated.GetPayload("other") == absl::Cord("kept"));
  CHECK(status.message() == "no such file");
}

TEST_CASE("Another message keeps code and payloads") {
  const absl::Status status =
      WithMessage(WithExitCode(absl::UnavailableError("x"), ExitCode::kIoError), "y");
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK(status.message() == "y");
  CHECK(ExitCodeFor(status) == ExitCode::kIoError);
}

TEST_CASE("A success stays a success whatever is said of it") {
  CHECK(Annotate(absl::OkStatus(), "where") == absl::OkStatus());
  CHECK(WithMessage(absl::OkStatus(), "y") == absl::OkStatus());
}

}  // namespace
}  // namespace lockstep
