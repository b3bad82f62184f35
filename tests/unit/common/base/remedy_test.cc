#include "common/base/remedy.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep {
namespace {

TEST_CASE("A remedy is added once, and keeps code and exit code") {
  const absl::Status bare = WithExitCode(absl::NotFoundError("/x: absent"), ExitCode::kIoError);
  const absl::Status told = AddRemedy(bare, "make it");
  CHECK(told.message() == "/x: absent. Remedy: make it");
  CHECK(absl::IsNotFound(told));
  CHECK(ExitCodeFor(told) == ExitCode::kIoError);
  CHECK(AddRemedy(told, "buy it").message() == "/x: absent. Remedy: make it");
  CHECK(AddRemedy(absl::OkStatus(), "make it").ok());
}

TEST_CASE("A remedy that fits better takes the place of another") {
  CHECK(SetRemedy(absl::NotFoundError("/x: absent. Remedy: make it"), "buy it").message() ==
        "/x: absent. Remedy: buy it");
  CHECK(SetRemedy(absl::NotFoundError("/x: absent"), "buy it").message() ==
        "/x: absent. Remedy: buy it");
  CHECK(SetRemedy(absl::OkStatus(), "buy it").ok());
}

}  // namespace
}  // namespace lockstep
