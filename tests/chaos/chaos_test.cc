// The chaos driver, in short; it runs for as long as it is told.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

TEST_CASE("fifty faults at random cost no bit of the model, and every exit code is true") {
  const TemporaryFolder folder;
  const Ended ended = RunToEnd({Binary("tests/chaos/chaos"), "--faults=50", "--seed=1",
                                "--json=" + folder.Path("report.json")},
                               absl::Minutes(4));
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto report = nlohmann::json::parse(folder.Read("report.json"), nullptr, false);
  REQUIRE(report.is_object());
  CHECK(report["faults"] >= 50);
  CHECK(report["steps"] > 0);
  CHECK(report["defects"].empty());
  for (const auto& row : report["rows"]) {
    CAPTURE(row.dump());
    CHECK(row["injected"] >= 1);
  }
}

}  // namespace
}  // namespace lockstep::test
