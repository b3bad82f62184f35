// Steps from timelines, and runs that have to be released together.
#include "tests/bench/step_times.h"

#include <catch2/catch.hpp>

#include "tests/bench/released.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kEvery = 100'000;

// Step s released `late` after the s-th multiple, the variables of the next `took` after that.
std::vector<StepLine> Worker(int64_t steps, int64_t late, int64_t took) {
  std::vector<StepLine> lines;
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t release = (s + 1) * kEvery + late;
    const int64_t variables = s * kEvery + late + took;
    lines.push_back(
        {.step = s, .token = variables - 10, .variables = variables, .first_gradient = release});
  }
  return lines;
}

TEST_CASE("a timeline is read by its columns") {
  test::TemporaryFolder folder;
  const std::string header =
      "step,token_us,variables_us,first_gradient_us,last_gradient_us,pushed_us\n";
  const auto read = ReadTimeline(folder.Write("t.csv", header + "5,10,20,30,40,50\n6,1,2,3,4,5\n"));
  REQUIRE(read.ok());
  REQUIRE(read->size() == 2);
  CHECK((*read)[0].step == 5);
  CHECK((*read)[0].token == 10);
  CHECK((*read)[0].variables == 20);
  CHECK((*read)[0].first_gradient == 30);
  CHECK((*read)[1].step == 6);
  for (const char* wrong : {"", "5,10,20,30,40\n", "5,10,20,30,40,50,60\n", "5,10,x,30,40,50\n"}) {
    CHECK(absl::IsDataLoss(ReadTimeline(folder.Write("w.csv", header + wrong)).status()));
  }
  CHECK_FALSE(ReadTimeline(folder.Path("missing.csv")).ok());
}

TEST_CASE("a step lasts from the first release to the last worker's variables") {
  const auto steps = ReleasedSteps({Worker(5, 50, 2000), Worker(5, 80, 3000)}, kEvery, 1);
  // Of steps 1, 2 and 3: the last one has no successor that had variables.
  CHECK(steps == std::vector<double>{3.03, 3.03, 3.03});
}

TEST_CASE("a step whose workers were released apart is left out, and one that a worker missed") {
  std::vector<StepLine> late = Worker(6, 0, 1000);
  late[2].first_gradient += kEvery;
  CHECK(ReleasedSteps({Worker(6, 0, 1000), late}, kEvery, 0).size() == 4);
  std::vector<StepLine> absent = Worker(6, 0, 1000);
  absent.erase(absent.begin() + 3);
  // Neither step 3 nor step 2, whose values nobody knows to have come.
  CHECK(ReleasedSteps({Worker(6, 0, 1000), absent}, kEvery, 0).size() == 3);
}

TEST_CASE("what is left of a push is from the last gradient to the verdicts") {
  std::vector<std::vector<StepLine>> workers(2);
  for (int64_t step = 0; step < 3; ++step) {
    for (int64_t worker : {0, 1}) {
      workers[worker].push_back(
          {.step = step, .last_gradient = 5000, .pushed = 5000 + 1000 * step + 500 * worker});
    }
  }
  CHECK(*PushAfterBackward(workers, 1) == 1.75);  // of 1, 1.5, 2 and 2.5
  CHECK_FALSE(PushAfterBackward(workers, 3).ok());
}

TEST_CASE("whole steps are from token to token") {
  const auto step = WholeStep(Worker(8, 0, 1000), 3);
  REQUIRE(step.ok());
  CHECK(*step == 100);
  CHECK_FALSE(WholeStep(Worker(4, 0, 1000), 3).ok());
}

TEST_CASE("a period that is too short is doubled until workers are released together") {
  std::vector<int64_t> tried;
  const Measure measure = MedianReleased(10, 4, [&](int64_t every) {
    tried.push_back(every);
    return every < 40 ? std::vector<double>{7.0} : std::vector<double>{1.0, 3.0};
  });
  CHECK(*measure() == 2);
  CHECK(tried == std::vector<int64_t>{10, 20, 40});
  CHECK(*measure() == 2);
  CHECK(tried.size() == 4);
  CHECK(tried.back() == 40);
  const Measure never = MedianReleased(10, 4, [](int64_t) { return std::vector<double>{}; });
  CHECK(absl::IsDeadlineExceeded(never().status()));
}

TEST_CASE("a peer's answer is milliseconds, or an error that says what it was") {
  const auto read = ReadMilliseconds({"/bin/echo", "1.5", "2", ""});
  REQUIRE(read.ok());
  CHECK(*read == std::vector<double>{1.5, 2});
  CHECK(absl::IsDataLoss(ReadMilliseconds({"/bin/echo", "1.5 oops"}).status()));
  CHECK(absl::IsUnavailable(ReadMilliseconds({"/bin/true"}).status()));
  CHECK(*MedianMilliseconds({"/bin/echo", "1", "2", "9"})() == 2);
  CHECK(absl::IsDataLoss(MedianMilliseconds({"/bin/echo"})().status()));
}

}  // namespace
}  // namespace lockstep::bench
