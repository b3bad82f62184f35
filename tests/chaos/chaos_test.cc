// The chaos driver, in short; it runs for as long as it is told.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

nlohmann::json ReportOf(int faults, std::vector<std::string> flags) {
  const TemporaryFolder folder;
  std::vector<std::string> command = {Binary("tests/chaos/chaos"),
                                      absl::StrCat("--faults=", faults), "--seed=1",
                                      "--json=" + folder.Path("report.json")};
  command.insert(command.end(), flags.begin(), flags.end());
  const Ended ended = RunToEnd(std::move(command), absl::Minutes(4));
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto report = nlohmann::json::parse(folder.Read("report.json"), nullptr, false);
  REQUIRE(report.is_object());
  CHECK(report["faults"] >= faults);
  CHECK(report["steps"] > 0);
  CHECK(report["defects"].empty());
  return report;
}

TEST_CASE("every fault once costs no bit of the model, and every exit code is true") {
  const nlohmann::json report = ReportOf(28, {});
  for (const auto& row : report["rows"]) {
    CAPTURE(row.dump());
    CHECK(row["injected"] >= 1);
  }
}

TEST_CASE("faults cost no bit of a model whose shards have copies") { ReportOf(13, {"--copies"}); }

TEST_CASE("under faults each step counts as many gradients as it needs, and each of them once") {
  ReportOf(9, {"--copies", "--ledger", "--backup"});
}

}  // namespace
}  // namespace lockstep::test
