#include "chief/plan/step_count.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

int64_t StepsOf(double data_epochs, int64_t examples, int64_t global_batch) {
  JobDef job;
  job.set_data_epochs(data_epochs);
  job.set_global_batch(global_batch);
  return CountSteps(job, {.train = examples}, 1)->value();
}

TEST_CASE("data epochs that are whole steps in decimal are no step more in binary") {
  CHECK(StepsOf(1.1, 100, 1) == 110);
  CHECK(StepsOf(1.1, 50'000, 250) == 220);
  CHECK(StepsOf(2.2, 50'000, 100) == 1100);
  CHECK(StepsOf(0.1, 1000, 10) == 10);
}

TEST_CASE("a part of a step is a step, however small it is") {
  CHECK(StepsOf(1.1, 101, 1) == 112);
  CHECK(StepsOf(1.1000000001, 100, 1) == 111);
  CHECK(StepsOf(1e-9, 100, 1) == 1);
  CHECK(StepsOf(1e-300, 100, 1) == 1);
}

}  // namespace
}  // namespace lockstep::chief
