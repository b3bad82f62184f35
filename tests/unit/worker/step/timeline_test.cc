#include "worker/step/timeline.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::worker {
namespace {

constexpr char kHeader[] =
    "step,token_us,variables_us,first_gradient_us,last_gradient_us,pushed_us\n";

std::unique_ptr<Timeline> Made(const std::string& path, const Clock* clock) {
  auto timeline = Timeline::Create(path, clock);
  REQUIRE(timeline.ok());
  return *std::move(timeline);
}

TEST_CASE("a timeline has a line for each step that was pushed") {
  test::TemporaryFolder folder;
  ManualClock clock;
  clock.Advance(absl::Seconds(1));
  const auto timeline = Made(folder.Path("t.csv"), &clock);
  const auto tick = [&] { clock.Advance(absl::Nanoseconds(10'999)); };
  for (int64_t step : {7, 8, 9}) {
    timeline->Started(GlobalStep(step));
    tick();
    timeline->HaveVariables();
    if (step == 8) continue;  // it had closed meanwhile
    for (int gradient = 0; gradient < 3; ++gradient) {
      tick();
      timeline->HaveGradient();
    }
    tick();
    timeline->Pushed(clock.Monotonic());
  }
  REQUIRE(timeline->Flush().ok());
  CHECK(folder.Read("t.csv") == std::string(kHeader) +
                                    "7,1000000,1000010,1000021,1000043,1000054\n"
                                    "9,1000065,1000076,1000087,1000109,1000120\n");
}

TEST_CASE("a timeline replaces an older file and loses no line of many") {
  test::TemporaryFolder folder;
  folder.Write("t.csv", std::string(100, 'x'));
  ManualClock clock;
  const auto timeline = Made(folder.Path("t.csv"), &clock);
  CHECK(folder.Read("t.csv").empty());
  constexpr int64_t kSteps = 5000;
  for (int64_t step = 0; step < kSteps; ++step) {
    // The largest numbers there are.
    timeline->Started(GlobalStep(step == 3 ? std::numeric_limits<int64_t>::min() : step));
    timeline->Pushed(clock.Monotonic());
  }
  REQUIRE(timeline->Flush().ok());
  const std::string text = folder.Read("t.csv");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  REQUIRE(lines.size() == kSteps + 2);
  CHECK(lines[0] + "\n" == kHeader);
  CHECK(absl::StartsWith(lines[4], "-9223372036854775808,0,"));
  for (int64_t step = 4; step < kSteps; ++step) {
    if (!absl::StartsWith(lines[step + 1], std::to_string(step) + ",")) FAIL("step " << step);
  }
}

TEST_CASE("a timeline that cannot be written says where and why") {
  test::TemporaryFolder folder;
  ManualClock clock;
  const absl::Status missing = Timeline::Create(folder.Path("no/t.csv"), &clock).status();
  CHECK(absl::StrContains(missing.message(), "no/t.csv: cannot create: No such file"));
  const auto full = Made("/dev/full", &clock);
  for (int step = 0; step < 5000; ++step) {
    full->Started(GlobalStep(step));
    full->Pushed(clock.Monotonic());
  }
  CHECK(absl::StrContains(full->Flush().message(), "/dev/full: cannot write: No space left"));
}

}  // namespace
}  // namespace lockstep::worker
