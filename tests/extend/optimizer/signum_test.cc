// A job trains with an optimizer that only this folder knows.
#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

#include "common/config/job.h"
#include "common/optimizer_proto/update_rule_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

absl::StatusOr<LoadedJob> Load(const std::string& optimizer) {
  test::TemporaryFolder folder;
  folder.Write("model.textproto", R"(
      input_shape: [2]
      layers { name: "fc" dense { units: 2 } }
      layers { name: "loss" softmax_cross_entropy {} })");
  return LoadJob(folder.Write("job.textproto", R"(
      model: "model.textproto"
      data { csv { train: "a" label_column: "0" } }
      global_batch: 12
      max_steps: 5
      optimizer {)" + optimizer + " learning_rate { base: 0.25 } }"));
}

std::string ErrorOf(const std::string& optimizer) {
  return std::string(Load(optimizer).status().message());
}

TEST_CASE("A ps trains with an optimizer that the job names by its type") {
  const auto job = Load("custom { type: 'signum' parameters { name: 'beta' number: 0.5 } }");
  INFO(job.status().ToString());
  REQUIRE(job.ok());
  CreateVariablesRequest request =
      ps::test::PlanOf(ps::test::PlacementOf({{.name = "w", .dims = {3}, .initial = 1}}), 1, 1);
  *request.mutable_optimizer() = job->job.optimizer();
  ps::test::Harness ps(request);
  // The mean is half of the first gradient, then (half of that + the second) / 2.
  ps.Grant(0, 1, 0.25f);
  ps.Push(0, 1, 0, 0, {4, -4, 0});
  CHECK(ps.Read(1, 0) == std::vector<float>{0.75f, 1.25f, 1});
  ps.Grant(1, 1, 0.25f);
  ps.Push(0, 2, 1, 0, {-1, -1, 2});
  CHECK(ps.Read(2, 0) == std::vector<float>{0.5f, 1.5f, 0.75f});
  const auto again = ps.shard.CreateVariables(request);
  REQUIRE(again.ok());
  REQUIRE(again->reply.slots_size() == 1);
  CHECK(again->reply.slots(0) == "mean");
}

TEST_CASE("What the job says of it is checked when the job is read") {
  CHECK(Load("custom { type: 'signum' }").ok());
  CHECK_THAT(ErrorOf("custom { type: 'sinum' }"),
             Contains("optimizer.custom.type: no optimizer is registered as \"sinum\"") &&
                 Contains("custom { type: \"signum\" }"));
  CHECK_THAT(
      ErrorOf("custom { type: 'signum' parameters { name: 'beta' number: 1 } }"),
      Contains("optimizer.custom.parameters: beta: expected a number from 0 to below 1, got 1"));
  CHECK_THAT(ErrorOf("custom { type: 'signum' parameters { name: 'gamma' number: 1 } }"),
             Contains("optimizer.custom.parameters: \"gamma\": \"signum\" has no such parameter") &&
                 Contains("its parameters are: beta"));
  CHECK_THAT(ErrorOf("custom { type: 'signum' parameters { name: 'beta' text: 'x' } }"),
             Contains("\"beta\": expected number, got text"));
  CHECK_THAT(ErrorOf("custom { type: 'signum' parameters { name: 'beta' number: 0 } "
                     "parameters { name: 'beta' number: 0 } }"),
             Contains("\"beta\": it comes twice"));
}

}  // namespace
}  // namespace lockstep
