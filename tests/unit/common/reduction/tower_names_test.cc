#include "common/reduction/tower_names.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

using Catch::Contains;

std::string ErrorOf(absl::string_view name, bool is_trained, int towers) {
  const absl::Status status = CheckTowerName(name, is_trained, towers);
  if (!status.ok()) REQUIRE(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST_CASE("the three names that the initial sync cannot copy") {
  CHECK_THAT(ErrorOf("tower0/kernel", true, 2),
             Contains("\"tower0/kernel\": Name should not have prefix 'tower0'. Remedy: "));
  CHECK_THAT(ErrorOf("tower1/kernel", true, 2),
             Contains("Prefix tower1 appears multiple times in its name, tower1/tower1/kernel"));
  CHECK_THAT(ErrorOf("tower7/fc/kernel", true, 2), Contains("Cannot find fc/kernel"));
  // Statistics count, too, but for the last: it is a warning in the original.
  CHECK_THAT(ErrorOf("tower0/moving_mean", false, 2), Contains("tower0"));
  CHECK_THAT(ErrorOf("tower1/moving_mean", false, 2), Contains("multiple times"));
  CHECK(ErrorOf("tower7/moving_mean", false, 2).empty());
  CHECK(InitialSyncWarning("tower7/moving_mean", 2) ==
        "Cannot find moving_mean, whose copy \"tower7/moving_mean\" would be on tower 7: the "
        "initial sync takes it for a variable of the model. Remedy: give the layer another name");
  CHECK(InitialSyncWarning("tower7/moving_mean", 1).empty());
  CHECK(InitialSyncWarning("fc/moving_mean", 2).empty());
}

TEST_CASE("other names, and one tower, are no matter") {
  for (const char* name : {"fc/kernel", "tower/kernel", "tower1", "tower1a/kernel", "towers/1",
                           "mytower0/kernel", "fc/tower1/kernel", "towe/r", ""}) {
    INFO(name);
    CHECK(ErrorOf(name, true, 8).empty());
  }
  CHECK(ErrorOf("tower0/kernel", true, 1).empty());
  CHECK_THAT(ErrorOf("tower99999999999999999999/kernel", true, 8), Contains("Cannot find kernel"));
}

}  // namespace
}  // namespace lockstep
