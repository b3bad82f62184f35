#include "chief/plan/finite_rate.h"

#include <catch2/catch.hpp>
#include <string>

#include "google/protobuf/text_format.h"
#include "tests/unit/chief/plan/plan_fixture.h"

namespace lockstep::chief {
namespace {

absl::Status CheckRate(const std::string& rate, int64_t end) {
  JobDef job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "optimizer { learning_rate { base: 1 " + rate + " } }", &job));
  return CheckFiniteRate(job, GlobalStep(end));
}

// 2 ^ 127 is a float, 2 ^ 128 is not.
TEST_CASE("a learning rate that grows to infinity before the last step is refused") {
  const std::string doubled = "exponential { decay_rate: 2 decay_steps: 10 staircase: true }";
  CHECK(CheckRate(doubled, 1280).ok());
  CHECK(CheckRate(doubled, 1281).message() ==
        "optimizer.learning_rate.exponential.decay_rate: expected a finite learning rate at the "
        "last step, 1,280, got inf, because 2 lets it grow. Remedy: lower decay_rate, or raise "
        "decay_steps");
  CHECK_FALSE(CheckRate(doubled + " warm_up { steps: 1300 }", 5).ok());
}

TEST_CASE("a learning rate that falls stays finite however many steps there are") {
  for (const char* const schedule :
       {"", "exponential { decay_rate: 0.9 decay_steps: 1 }",
        "natural_exp { decay_rate: 3e38 decay_steps: 1 }",
        "inverse_time { decay_rate: 3e38 decay_steps: 1 }", "cosine { decay_steps: 1 }",
        "polynomial { decay_steps: 1 end_learning_rate: 3e38 power: 1 cycle: true }",
        "warm_up { steps: 9 start: 3e38 }"}) {
    CAPTURE(schedule);
    for (const int64_t end : {1, 2, 1000000000}) CHECK(CheckRate(schedule, end).ok());
  }
}

TEST_CASE("the plan of a job whose learning rate becomes infinite is refused") {
  Fixture f;
  CHECK(Mentions(f.Fail("base: 0.5", "base: 0.5 exponential { decay_rate: 1e6 decay_steps: 1 }"),
                 "job.textproto: optimizer.learning_rate.exponential.decay_rate: expected"));
}

TEST_CASE("of several losses the one whose learning rate becomes infinite is named") {
  JobDef job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "losses { optimizer { learning_rate { base: 1 } } }"
      "losses { optimizer { learning_rate { base: 1 exponential { decay_rate: 9 decay_steps: 1 }"
      "} } }",
      &job));
  CHECK(Mentions(CheckFiniteRate(job, GlobalStep(99)), "losses[1].optimizer.learning_rate."));
}

}  // namespace
}  // namespace lockstep::chief
