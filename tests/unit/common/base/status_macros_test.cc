#include "common/base/status_macros.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace lockstep {
namespace {

absl::StatusOr<std::unique_ptr<int>> Make(bool sound) {
  if (!sound) return absl::DataLossError("no number");
  return std::make_unique<int>(42);
}

absl::StatusOr<std::string> Use(bool first, bool second) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<int> number, Make(first));
  LOCKSTEP_RETURN_IF_ERROR(Make(second).status());
  return std::to_string(*number);
}

TEST_CASE("The first error is returned as it is") {
  CHECK(*Use(true, true) == "42");
  CHECK(Use(false, true).status() == absl::DataLossError("no number"));
  CHECK(Use(true, false).status() == absl::DataLossError("no number"));
}

}  // namespace
}  // namespace lockstep
