// What the emulation of a GPU makes of a kernel that lacks a barrier.
#include <catch2/catch.hpp>
#include <string>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

constexpr char kProbe[] = "tests/unit/worker/device/cuda/barrier_probe";

Ended Probe(const char* barrier) { return RunToEnd({Binary(kProbe), barrier}, absl::Seconds(60)); }

TEST_CASE("a kernel with its barrier gives what it should") {
  const Ended ended = Probe("with");
  CHECK(ended.exit_code == 0);
  CHECK(ended.output == "right\n");
}

TEST_CASE("a barrier that is left out shows in the values, or is a data race for ThreadSanitizer") {
  const Ended ended = Probe("without");
#if defined(__SANITIZE_THREAD__)
  CHECK(ended.exit_code == 66);
  CHECK_THAT(ended.output, Catch::Contains("WARNING: ThreadSanitizer: data race"));
#else
  CHECK(ended.exit_code == 0);
  CHECK(ended.output == "wrong\n");
#endif
}

}  // namespace
}  // namespace lockstep::test
