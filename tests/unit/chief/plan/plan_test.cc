#include "chief/plan/plan.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chief/plan/job_changes.h"
#include "chief/plan/messages.h"
#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/plan/plan_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a plan has everything that the ps and the workers are told") {
  Fixture f;
  const absl::StatusOr<JobPlan> plan = f.Make();
  REQUIRE(plan.ok());
  CHECK(plan->examples.train == 7);
  CHECK(plan->examples.test == 2);
  CHECK(plan->max_steps == GlobalStep(10));
  CHECK(plan->start == GlobalStep(0));
  CHECK(plan->epoch == Epoch(1));
  CHECK(plan->is_classifier);
  CHECK(plan->required() == 1);
  CHECK(plan->examples_per_step() == 2);
  CHECK(plan->learning_rate(GlobalStep(3)) == 0.5f);
  CHECK(plan->optimizer == "momentum");

  const Placement& placement = plan->placement;
  REQUIRE(placement.variables_size() == 3);
  CHECK(placement.shards() == 2);
  for (int i = 0; i < 3; ++i) CHECK(placement.variables(i).id() == static_cast<uint32_t>(i));
  CHECK(placement.variables(0).name() == "fc/kernel");
  CHECK(placement.variables(0).shard() == 1);
  CHECK(placement.variables(1).shard() == 0);
  CHECK(placement.variables(2).name() == ModelGraph::kLossVariable);
  CHECK(placement.variables(2).shard() == 0);
  CHECK_FALSE(placement.variables(2).trainable());
  CHECK(plan->loss_variable == 2);
  CHECK(plan->balance.max_bytes == 24);

  const CreateVariablesRequest create = ToCreateVariables(*plan);
  CHECK(create.total_num_replicas() == 2);
  CHECK(create.replicas_to_aggregate() == 1);
  CHECK(create.init_tokens() == -1);
  CHECK(create.sync().replicas_to_aggregate() == 1);
  CHECK(create.transport().shared_memory() == plan->job.transport().shared_memory());
  CHECK(create.has_transport());
  const RegisterTaskReply registration = ToRegistration(*plan);
  CHECK(registration.max_steps() == 10);
  CHECK(registration.job().batch_per_tower() == 2);
  CHECK(registration.training_examples_size() == 1);
  CHECK(registration.training_examples(0) == plan->examples.train);
  CHECK(registration.test_examples() == plan->examples.test);
}

TEST_CASE("a plan knows the columns that it trains on, which the job may name") {
  Fixture f;
  const absl::StatusOr<JobPlan> plan = f.Make();
  REQUIRE(plan.ok());
  const RegisterTaskReply registration = ToRegistration(*plan);
  const auto& columns = registration.job().data().csv().columns();
  CHECK(std::vector<std::string>(columns.begin(), columns.end()) ==
        std::vector<std::string>{"a", "b"});
  CHECK(f.Fail("csv {", "csv { columns: ['a', 'b']").ok());
  CHECK(Mentions(f.Fail("csv {", "csv { columns: ['a', 'c']"),
                 "train.csv: expected the columns of data.csv.columns, got \"b\" in the place of "
                 "\"c\". Remedy: correct it, or leave it out"));
  // A run of a version that did not write them has not changed them.
  JobDef before = plan->job;
  before.mutable_data()->mutable_csv()->clear_columns();
  CHECK(DescribeJobChanges(before.DebugString(), "", plan->job, plan->model).empty());
}

TEST_CASE("every replica counts where all are needed in each step and none is ever left out") {
  Fixture f;
  const auto counts = [&f](const std::string& sync) {
    f.Write(absl::StrReplaceAll(kJob, {{"sync { replicas_to_aggregate: 1 }", sync}}));
    const absl::StatusOr<JobPlan> plan = f.Make();
    REQUIRE(plan.ok());
    return ToCreateVariables(*plan).every_replica_counts();
  };
  CHECK(counts("sync { replicas_to_aggregate: 2 }"));
  CHECK(counts("sync { replicas_to_aggregate: 2 quorum_policy: ABORT }"));
  CHECK_FALSE(counts("sync { replicas_to_aggregate: 1 }"));
  CHECK_FALSE(counts("sync { replicas_to_aggregate: 2 quorum_policy: SHRINK }"));
  CHECK_FALSE(counts("sync { replicas_to_aggregate: 2 token_policy: FIFO }"));
  CHECK_FALSE(counts("sync { asynchronous {} }"));
}

TEST_CASE("row indices are left as they are: offset and scale are refused with an embedding") {
  Fixture f;
  f.folder.Write("model.textproto", R"(
    input_shape: [2]
    layers { name: "e" embedding { rows: 9 dim: 3 combiner: SUM } }
    layers { name: "loss" softmax_cross_entropy {} }
  )");
  CHECK(f.Make().ok());
  const absl::Status status = f.Fail("data {", "data { scale: 0.5");
  CHECK(absl::IsInvalidArgument(status));
  CHECK(Mentions(status, "job.textproto: data.scale: expected 1, for an embedding takes row"));
}

TEST_CASE("data epochs become steps, rounded up") {
  Fixture f;
  const auto steps = [&](const std::string& epochs) {
    f.Write(absl::StrReplaceAll(kJob, {{"max_steps: 10", "data_epochs: " + epochs}}));
    return f.Make()->max_steps.value();
  };
  CHECK(steps("1") == 2);
  CHECK(steps("4") == 7);
  CHECK(steps("4.01") == 8);
  CHECK(steps("0.001") == 1);
  // Seven examples of two workers: a load of 4, one of 2 and a rest; 3 passes over each.
  f.Write(absl::StrReplaceAll(
      kJob, {{"global_batch: 4", "local_sync { load: 4 passes: 3 max_per_device_batch_size: 1 }"},
             {"max_steps: 10", "data_epochs: 1.5"}}));
  CHECK(f.Make()->max_steps.value() == 14);
  CHECK(Mentions(f.Fail("max_steps: 10", "data_epochs: 1e300"), "data_epochs"));
}

TEST_CASE("what is wrong is told with file and place before anything starts") {
  Fixture f;
  CHECK(Mentions(f.Fail("replicas_to_aggregate: 1", "replicas_to_aggregate: 3"),
                 "job.textproto: sync.replicas_to_aggregate"));
  CHECK(Mentions(f.Fail("max_steps: 10", "max_stepz: 10"), "job.textproto:5"));
  CHECK(ExitCodeFor(f.Fail("train.csv", "absent.csv")) == ExitCode::kInputNotFound);
  f.Write(kJob);
  f.folder.Write("model.textproto", absl::StrReplaceAll(kModel, {{"[2]", "[3]"}}));
  const absl::Status shape = f.Make().status();
  CHECK(ExitCodeFor(shape) == ExitCode::kBadConfiguration);
  CHECK(Mentions(shape, "train.csv"));
  f.folder.Write("model.textproto", absl::StrReplaceAll(kModel, {{"dense", "densse"}}));
  CHECK(Mentions(f.Make().status(), "model.textproto:3"));
  f.folder.Write("model.textproto", absl::StrReplaceAll(kModel, {{"units: 3", "units: -3"}}));
  CHECK(Mentions(f.Make().status(), "model.textproto: layer \"fc\""));
  f.folder.Write("model.textproto", kModel);
  f.folder.Write("train.csv", "a,b,label\n1,2,0\n1,x,1\n");
  const absl::Status number = f.Make().status();
  CHECK(ExitCodeFor(number) == ExitCode::kCorruptInput);
  CHECK(Mentions(number, "train.csv"));
}

TEST_CASE("under FIFO one worker is enough to begin") {
  Fixture f;
  f.Write(absl::StrReplaceAll(
      kJob, {{"replicas_to_aggregate: 1", "replicas_to_aggregate: 2 token_policy: FIFO"}}));
  const absl::StatusOr<JobPlan> plan = f.Make();
  REQUIRE(plan.ok());
  CHECK(plan->needed_workers() == 1);
  CHECK(ToCreateVariables(*plan).init_tokens() == 2);
}

TEST_CASE("a part size that is none is refused") {
  Fixture f;
  f.Write(absl::StrCat(kJob, "max_part_bytes: -1"));
  CHECK(Mentions(f.Make().status(), "job.textproto: max_part_bytes: expected a number from 0"));
}

TEST_CASE("what a job has changed is told field by field, of job and model") {
  Fixture f;
  const absl::StatusOr<JobPlan> before = f.Make();
  REQUIRE(before.ok());
  const CreateVariablesRequest kept = ToCreateVariables(*before);
  CHECK(DescribeJobChanges(kept.job_text(), kept.model_text(), before->job, before->model).empty());
  f.Write(
      absl::StrReplaceAll(kJob, {{"base: 0.5", "base: 0.25"}, {"max_steps: 10", "max_steps: 20"}}));
  f.folder.Write("model.textproto", absl::StrReplaceAll(kModel, {{"units: 3", "units: 4"}}));
  const absl::StatusOr<JobPlan> now = f.Make();
  REQUIRE(now.ok());
  const std::string changes =
      DescribeJobChanges(kept.job_text(), kept.model_text(), now->job, now->model);
  INFO(changes);
  CHECK(changes.find("max_steps: 10 -> 20") != std::string::npos);
  CHECK(changes.find("optimizer.learning_rate.base: 0.5 -> 0.25") != std::string::npos);
  CHECK(changes.find("model: layers[0].dense.units: 3 -> 4") != std::string::npos);
  CHECK(DescribeJobChanges("", "", now->job, now->model).empty());
}

TEST_CASE("averages are of variables that the model trains") {
  Fixture f;
  const auto only = [&](const std::string& name) {
    return f.Fail("base: 0.5 }",
                  "base: 0.5 } variable_averages { decay: 0.9 only: '" + name + "' }");
  };
  CHECK(only("fc/bias").ok());
  const absl::Status unknown = only("fc/none");
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK(Mentions(unknown, "job.textproto: optimizer.variable_averages.only"));
  CHECK(Mentions(unknown, "\"fc/none\". Remedy: use a name such as \"fc/kernel\""));
  CHECK(Mentions(only(std::string(ModelGraph::kLossVariable)), "trains no variable"));
}

TEST_CASE("replicated variables are told apart by name") {
  Fixture f;
  const auto plan = [&](const std::string& layer, const std::string& towers) {
    f.folder.Write("model.textproto", absl::StrReplaceAll(kModel, {{"\"fc\"", layer}}));
    return f.Fail("sync { replicas_to_aggregate: 1 }", "strategy { replicated {} }" + towers);
  };
  CHECK(plan("'fc'", " towers: 2").ok());
  CHECK(plan("'tower0'", "").ok());
  CHECK(Mentions(plan("'tower0'", " towers: 2"),
                 "job.textproto: strategy.replicated: the initial sync cannot copy "
                 "\"tower0/kernel\": Name should not have prefix 'tower0'. Remedy: "));
}

TEST_CASE("a job whose transformed data end before its last step is refused") {
  Fixture fixture;
  const auto error = [&](const std::string& data) {
    const absl::Status status =
        fixture.Fail("label_column: \"label\" }", "label_column: \"label\" } " + data);
    INFO(data);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("job.textproto: ") && Catch::Contains("Remedy: "));
    return std::string(status.message());
  };
  // Worker 0 has four of the seven examples, worker 1 three.
  CHECK_THAT(error("auto_shard: OFF transform { batch {} }"),
             Catch::Contains("the last one has 1"));
  CHECK_THAT(error("transform { batch { drop_remainder: true } }"),
             Catch::Contains("worker 0 has data for 2 steps, the job has 10"));
  CHECK_THAT(
      error("transform { batch { drop_remainder: true } } transform { repeat { count: 7 } }"),
      Catch::Contains("worker 1 has data for 7 steps"));
  CHECK_THAT(error("auto_shard: FILE"),
             Catch::Contains("data.auto_shard: FILE: expected at least 2 training files"));
  CHECK(fixture
            .Fail("label_column: \"label\" }",
                  "label_column: \"label\" } transform { repeat {} } transform { batch {} }")
            .ok());
}

}  // namespace
}  // namespace lockstep::chief
