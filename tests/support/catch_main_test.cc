// A sharded test runs, of the test cases that a filter selects, each in one shard.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::EndsWith;

constexpr absl::Duration kTimeout = absl::Seconds(30);

TEST_CASE("chosen, the first of two", "[.chosen]") { CHECK(true); }
TEST_CASE("chosen, the second of two", "[.chosen]") { CHECK(true); }

Ended RunShard(int shard, const std::string& filter) {
  return RunToEnd({std::filesystem::read_symlink("/proc/self/exe")}, kTimeout,
                  {"TEST_TOTAL_SHARDS=2", absl::StrCat("TEST_SHARD_INDEX=", shard),
                   absl::StrCat("TESTBRIDGE_TEST_ONLY=", filter)});
}

TEST_CASE("the test cases of a filter are divided into the shards") {
  for (const int shard : {0, 1}) {
    const Ended ended = RunShard(shard, "[.chosen]");
    CHECK(ended.exit_code == 0);
    CHECK_THAT(ended.output, EndsWith("\n1 passed, 0 failed\n"));
  }
}

TEST_CASE("a shard for which nothing is left has passed") {
  CHECK(RunShard(0, "chosen*first*").exit_code == 0);
  const Ended ended = RunShard(1, "chosen*first*");
  CHECK(ended.exit_code == 0);
  CHECK(ended.output.empty());
}

}  // namespace
}  // namespace lockstep::test
