// A job whose processes are started again and again by fixed command lines, in short; launcher_loop
// itself runs for as long as it is told.
#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

TEST_CASE("a job whose processes are killed and started again ends with the undisturbed model") {
  const Ended ended = RunToEnd(
      {Binary("tests/integration/launcher_loop"), "--faults=5", "--pause=1500ms", "--limit=4m"},
      absl::Minutes(5));
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
}

}  // namespace
}  // namespace lockstep::test
