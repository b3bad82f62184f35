#include "tests/integration/check_ends.h"

#include <catch2/catch.hpp>
#include <utility>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(10);

}  // namespace

void CheckEnds(std::vector<std::string> command, int exit_code,
               const std::vector<std::string>& words, std::vector<std::string> environment) {
  const Ended ended = RunToEnd(std::move(command), kLimit, std::move(environment));
  INFO(ended.output);
  CHECK(ended.exit_code == exit_code);
  for (const std::string& word : words) {
    CHECK_THAT(ended.output, Catch::Matchers::Contains(word));
  }
}

}  // namespace lockstep::test
