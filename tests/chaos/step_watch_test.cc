#include "tests/chaos/step_watch.h"

#include <catch2/catch.hpp>

namespace lockstep::test {
namespace {

TEST_CASE("the longest pause lies between two new steps, or after the last one") {
  StepWatch watch;
  watch.OnAnswer(absl::Seconds(1), 0, 10);
  watch.Begin(absl::Seconds(2));
  watch.OnAnswer(absl::Seconds(3), 0, 10);  // nothing new
  watch.OnAnswer(absl::Seconds(5), 0, 11);
  watch.OnAnswer(absl::Seconds(6), 0, 12);
  CHECK(watch.num_advances() == 2);
  CHECK(watch.LongestPause(absl::Seconds(6)) == absl::Seconds(3));
  CHECK(watch.LongestPause(absl::Seconds(10)) == absl::Seconds(4));
}

TEST_CASE("to go back is no step, and the next one from there is") {
  StepWatch watch;
  watch.OnAnswer(absl::Seconds(0), 0, 100);
  watch.Begin(absl::Seconds(1));
  watch.OnAnswer(absl::Seconds(2), 0, 0);
  watch.OnAnswer(absl::Seconds(4), 0, 50);  // restored
  CHECK(watch.LongestPause(absl::Seconds(4)) == absl::Seconds(3));
}

TEST_CASE("the first answer of a ps is no step") {
  StepWatch watch;
  watch.Begin(absl::Seconds(1));
  watch.OnAnswer(absl::Seconds(2), 0, 100);
  watch.OnAnswer(absl::Seconds(2), 1, 100);
  CHECK(watch.num_advances() == 0);
  watch.OnAnswer(absl::Seconds(3), 1, 101);
  CHECK(watch.num_advances() == 1);
}

}  // namespace
}  // namespace lockstep::test
