#include "common/config/flags.h"

#include <catch2/catch.hpp>
#include <optional>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"

ABSL_FLAG(std::string, cluster, "", "file with the cluster spec");
ABSL_FLAG(int32_t, task_index, -1, "index of this task");
ABSL_FLAG(bool, insecure, false, "serve without TLS");
ABSL_FLAG(std::optional<int64_t>, limit, std::nullopt, "how many");
ABSL_FLAG(double, fraction, 0.5, "a share");

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// Flags are put back when the test ends.
class FlagsFixture {
 private:
  absl::FlagSaver saver_;
};

std::string ErrorOf(std::initializer_list<const char*> arguments) {
  const FlagsResult result = ParseFlags("ps", "usage", arguments);
  CHECK(result.exit);
  CHECK(result.code == ExitCode::kUsage);
  CHECK(result.output.empty());
  CHECK_THAT(result.error, StartsWith("ps: ") && Catch::EndsWith("\n"));
  return result.error;
}

TEST_CASE_METHOD(FlagsFixture, "Flags take their values in every usual form") {
  const FlagsResult result = ParseFlags(
      "ps", "usage", {"--cluster=a=b.json", "--task_index", "3", "--insecure", "-fraction=0.25"});
  CHECK_FALSE(result.exit);
  CHECK(absl::GetFlag(FLAGS_cluster) == "a=b.json");
  CHECK(absl::GetFlag(FLAGS_task_index) == 3);
  CHECK(absl::GetFlag(FLAGS_insecure));
  CHECK(absl::GetFlag(FLAGS_fraction) == 0.25);
  REQUIRE(SetFlags({"--noinsecure", "--task_index=-7", "--task_index", "-5", "--cluster="}).ok());
  CHECK_FALSE(absl::GetFlag(FLAGS_insecure));
  CHECK(absl::GetFlag(FLAGS_task_index) == -5);
  CHECK(absl::GetFlag(FLAGS_cluster).empty());
  REQUIRE(SetFlags({"--insecure=true"}).ok());
  CHECK(absl::GetFlag(FLAGS_insecure));
  REQUIRE(SetFlags({"--limit=5"}).ok());
  CHECK(absl::GetFlag(FLAGS_limit) == 5);
  CHECK(SetFlags({}).ok());
}

TEST_CASE_METHOD(FlagsFixture, "An unknown flag names the nearest one") {
  CHECK_THAT(ErrorOf({"--task-index=1"}),
             Contains("--task-index: unknown flag; did you mean --task_index?"));
  CHECK_THAT(ErrorOf({"--clusters", "x"}), Contains("did you mean --cluster?"));
  CHECK_THAT(ErrorOf({"--versoin"}), Contains("did you mean --version?"));
  CHECK_THAT(ErrorOf({"--zzzzzzzzzzzzzz"}), !Contains("did you mean"));
  CHECK_THAT(ErrorOf({"--nocluster"}), Contains("unknown flag"));
  CHECK_THAT(ErrorOf({"--noinsecure=true"}), Contains("unknown flag"));
  CHECK_THAT(ErrorOf({"--flagfile=x"}), Contains("unknown flag"));
}

TEST_CASE_METHOD(FlagsFixture, "Bad and missing values name the flag") {
  CHECK_THAT(ErrorOf({"--task_index=two"}),
             Contains("--task_index: expected a whole number, got \"two\""));
  CHECK_THAT(ErrorOf({"--task_index="}), Contains("expected a whole number"));
  CHECK_THAT(ErrorOf({"--task_index=99999999999"}), Contains("expected a whole number"));
  CHECK_THAT(ErrorOf({"--limit=some"}), Contains("expected a whole number"));
  CHECK_THAT(ErrorOf({"--insecure=maybe"}), Contains("expected true or false"));
  CHECK_THAT(ErrorOf({"--fraction=x"}), Contains("expected a number"));
  CHECK_THAT(ErrorOf({"--cluster"}), Contains("--cluster: expected a value, got none"));
  CHECK_THAT(ErrorOf({"--cluster", "--insecure"}), Contains("--cluster: expected a value"));
}

TEST_CASE_METHOD(FlagsFixture, "What is no flag is refused") {
  for (const char* stray : {"cluster.json", "", "-", "--"}) {
    CAPTURE(stray);
    CHECK_THAT(ErrorOf({"--insecure", stray}), Contains("expected a flag --name=value"));
  }
  CHECK_THAT(ErrorOf({"\x1b[2J"}), Contains("\\x1b"));
}

TEST_CASE_METHOD(FlagsFixture, "Help lists every flag and wins over mistakes") {
  const FlagsResult result = ParseFlags("ps", "Serves variables.\n", {"--nonsense", "--help"});
  CHECK(result.exit);
  CHECK(result.code == ExitCode::kDone);
  CHECK(result.error.empty());
  CHECK_THAT(result.output, StartsWith("Serves variables.\n"));
  CHECK_THAT(result.output, Contains("--cluster  file with the cluster spec\n"));
  CHECK_THAT(result.output, Contains("--task_index  index of this task (default: -1)"));
  CHECK(ParseFlags("ps", "Serves variables.\n", {"-h"}).output == result.output);
  CHECK_THAT(result.output, Contains("--insecure") && Contains("--help") && Contains("--version"));
}

TEST_CASE("Version names the program") {
  const FlagsResult result = ParseFlags("worker", "usage", {"--version"});
  CHECK(result.exit);
  CHECK(result.code == ExitCode::kDone);
  CHECK(result.output == "worker 0.1.0\n");
}

}  // namespace
}  // namespace lockstep
