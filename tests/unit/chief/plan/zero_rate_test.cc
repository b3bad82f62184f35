#include "chief/plan/zero_rate.h"

#include <catch2/catch.hpp>
#include <string>

#include "google/protobuf/text_format.h"

namespace lockstep::chief {
namespace {

std::string WarningFor(const std::string& job_text, int64_t start, int64_t end) {
  JobDef job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(job_text, &job));
  return ZeroRateWarning(job, GlobalStep(start), GlobalStep(end));
}

std::string OfSchedule(const std::string& schedule, int64_t start, int64_t end) {
  return WarningFor("optimizer { learning_rate { base: 1 " + schedule + " } }", start, end);
}

TEST_CASE("a job that goes on behind the end of its schedule is warned of its learning rate") {
  const std::string cosine = "cosine { decay_steps: 600 }";
  CHECK(OfSchedule(cosine, 0, 600).empty());
  CHECK(OfSchedule(cosine, 600, 600).empty());
  CHECK(OfSchedule(cosine, 600, 1800) ==
        "optimizer.learning_rate.cosine: the learning rate is 0 from step 600 on, so the steps to "
        "1,800 do not train. Remedy: raise decay_steps to 1800");
  CHECK_FALSE(OfSchedule(cosine, 0, 601).empty());
  CHECK_FALSE(OfSchedule("polynomial { decay_steps: 600 end_learning_rate: 0 }", 0, 601).empty());
}

TEST_CASE("a warm-up to a schedule that has ended has the learning rate 0, too") {
  const auto from = [](const std::string& step) {
    return Catch::Contains("is 0 from step " + step + " on");
  };
  const std::string cosine = "cosine { decay_steps: 6 } ";
  CHECK_THAT(OfSchedule(cosine + "warm_up { steps: 9 }", 0, 20), from("0"));
  CHECK_THAT(OfSchedule(cosine + "warm_up { steps: 9 start: 0.1 }", 0, 20), from("8"));
  CHECK_THAT(OfSchedule(cosine + "warm_up { steps: 5 }", 0, 20), from("6"));
}

TEST_CASE("a schedule that ends above 0 is no reason for a warning") {
  for (const char* schedule : {"", "constant {}", "cosine { decay_steps: 6 alpha: 0.1 }",
                               "polynomial { decay_steps: 6 end_learning_rate: 0.1 }",
                               "polynomial { decay_steps: 6 end_learning_rate: 0 cycle: true }",
                               "exponential { decay_rate: 0.9 decay_steps: 6 }",
                               "cosine { decay_steps: 6 } warm_up { steps: 10 start: 0.1 }"}) {
    CAPTURE(schedule);
    CHECK(OfSchedule(schedule, 0, 9).empty());
  }
}

TEST_CASE("of several losses the first one whose learning rate is 0 is named") {
  const std::string warning = WarningFor(
      "losses { optimizer { learning_rate { base: 1 } } }"
      "losses { optimizer { learning_rate { base: 1 cosine { decay_steps: 5 } } } }",
      7, 9);
  CHECK(warning.find("losses[1].optimizer.learning_rate.cosine") == 0);
  CHECK(warning.find("from step 7 on") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::chief
