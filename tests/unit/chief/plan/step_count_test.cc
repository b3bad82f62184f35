#include "chief/plan/step_count.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"

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

// Steps of one data epoch of 7 examples in 2 files, on 2 workers with batches of 2.
int64_t TransformedSteps(const std::string& data, double data_epochs = 1,
                         const std::string& more = "") {
  JobDef job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("batch_per_tower: 2 global_batch: 4 towers: 1 data { ", data, " } ", more),
      &job));
  job.set_data_epochs(data_epochs);
  const auto steps = CountSteps(job, {.train = 7, .train_files = {4, 3}}, 2);
  INFO(steps.status());
  REQUIRE(steps.ok());
  return steps->value();
}

TEST_CASE("transformations that drop nothing leave the steps of data epochs as they are") {
  CHECK(TransformedSteps("transform { repeat {} } transform { batch {} }", 4) == 7);
  CHECK(TransformedSteps("auto_shard: FILE transform { repeat {} } transform { batch {} }", 4) ==
        7);
  // Each worker passes over all seven in seven steps of two passes: the job makes four.
  CHECK(TransformedSteps("auto_shard: OFF transform { repeat {} } transform { batch {} }", 4) == 7);
  CHECK(TransformedSteps("transform { repeat {} } transform { batch {} }", 4,
                         "sync { asynchronous {} }") == 14);
}

TEST_CASE("what a transformation drops in each pass makes no steps") {
  const std::string batch = "transform { batch { drop_remainder: true } } ";
  // Four examples of worker 0 are two batches, three of worker 1 are one: on average 1.5.
  CHECK(TransformedSteps(batch + "transform { repeat {} }", 4) == 6);
  CHECK(TransformedSteps("auto_shard: OFF transform { shuffle { buffer: 9 } } " + batch +
                             "transform { shard {} } transform { repeat {} }",
                         4) == 6);
}

TEST_CASE("all of data that end are as many data epochs as passes over them") {
  const std::string batch = "transform { batch { drop_remainder: true } } ";
  // Worker 1, with three examples, has the fewest batches.
  CHECK(TransformedSteps(batch) == 1);
  CHECK(TransformedSteps("transform { repeat { count: 3 } } " + batch, 3) == 4);
  CHECK(TransformedSteps("transform { repeat { count: 3 } } " + batch, 1.5) == 2);
  CHECK(TransformedSteps(batch + "transform { repeat { count: 3 } }", 3) == 3);
  CHECK(TransformedSteps("auto_shard: OFF " + batch, 2) == 3);
}

}  // namespace
}  // namespace lockstep::chief
