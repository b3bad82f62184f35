#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

#include "deploy/cli/job_progress.h"
#include "deploy/cli/status_table.h"

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

ProcessStatus Parse(const char* text) {
  ProcessStatus status;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &status));
  return status;
}

constexpr char kTraining[] = R"(
  role: "chief" state: "training" global_step: 1200 version: "0.1.0" host: "h" pid: 7
  job {
    name: "digits" max_steps: 2000 loss: 0.12345 steps_per_second: 40 examples_per_second: 3840
    eta_seconds: 20 accepted: 9600 stale: 12 replicas_to_aggregate: 2 required_now: 2 total_num_replicas: 3
    members { worker: 0 address: "a:1" state: "live" local_step: 1200 seconds_since_heartbeat: 0.3 }
    members { worker: 1 address: "a:2" state: "absent" waiting_for: "its start" }
    shards { shard: 0 address: "a:3" state: "ready" variables: 5 bytes: 4096 closed_steps: 1200 }
    evaluations { step: 500 examples: 359 accuracy: 0.95 loss: 0.2 }
    evaluations { step: 1000 examples: 359 accuracy: 0.975 loss: 0.1 }
    last_checkpoint: "/c/ckpt-1000"
  })";

TEST_CASE("a training job's progress has step, loss, rate and ETA") {
  CHECK(JobProgress::Line(Parse(kTraining)) ==
        "step 1,200/2,000  loss 0.1235  3,840 examples/s  ETA 20 s");
}

TEST_CASE("a job that waits says for what, once") {
  CHECK(JobProgress::Line(Parse("state: 'starting' waiting_for: 'ps 1 (a:3)'")) ==
        "starting, waiting for ps 1 (a:3)");
  CHECK(JobProgress::Line(Parse("state: 'starting'")) == "starting");
  ProcessStatus stalled = Parse(kTraining);
  stalled.set_state("waiting");
  stalled.set_waiting_for("step 1200 for 11.0 s");
  CHECK(JobProgress::Line(stalled) ==
        "step 1,200/2,000  loss 0.1235  3,840 examples/s  waiting for step 1200 for 11.0 s");
  CHECK_THAT(StatusTable(stalled), StartsWith("chief 0: waiting for step 1200 for 11.0 s\n"));
  stalled.set_state("starting");
  CHECK_THAT(StatusTable(stalled), StartsWith("chief 0: starting, waiting for step 1200 "));
}

TEST_CASE("each evaluation is told once") {
  JobProgress progress;
  ProcessStatus status = Parse(kTraining);
  const auto first = progress.News(status);
  REQUIRE(first.size() == 2);
  CHECK(first[1] == "step 1000: test accuracy 97.50 %, loss 0.1000, on 359 examples");
  CHECK(progress.News(status).empty());
  auto* more = status.mutable_job()->add_evaluations();
  more->set_step(2000);
  CHECK(progress.News(status).size() == 1);
}

TEST_CASE("the chief's table shows job, workers and shards") {
  const std::string table = StatusTable(Parse(kTraining));
  CHECK_THAT(table, Contains("job digits: step 1,200 of 2,000, loss 0.1235"));
  CHECK_THAT(table, Contains("2 of 3 replicas per step"));
  CHECK_THAT(table, Contains("accuracy 97.50 %"));
  CHECK_THAT(table, Contains("/c/ckpt-1000"));
  CHECK_THAT(table, Contains("a:2") && Contains("never") && Contains("its start"));
  CHECK_THAT(table, Contains("4.0 KiB"));
}

TEST_CASE("the tables of ps and worker show what they hold") {
  CHECK_THAT(StatusTable(Parse(R"(role: "ps" task: 1 shard { variables: 3 bytes: 2048 accepted: 7
             pending { name: "conv1/kernel" have: 1 required: 2 from: 2 } })")),
             Contains("ps 1") && Contains("3 variables, 2.0 KiB") && Contains("conv1/kernel"));
  CHECK_THAT(StatusTable(Parse("role: 'worker' worker { towers: 2 device: 'cpu' loss: 1.5 }")),
             Contains("loss 1.5") && Contains("2 towers on cpu"));
}

TEST_CASE("what a process says cannot steer the terminal") {
  ProcessStatus status = Parse("role: 'ps'");
  status.set_state("\033[2Jgone");
  CHECK(StatusTable(status).find('\033') == std::string::npos);
}

TEST_CASE("a job that goes on with fewer gradients says with how many") {
  ProcessStatus chief = Parse(kTraining);
  CHECK_THAT(StatusTable(chief), Contains("; 2 of 3 replicas per step; last"));
  chief.mutable_job()->set_required_now(1);
  CHECK_THAT(StatusTable(chief), Contains("; 2 of 3 replicas per step, now 1; last"));
}

TEST_CASE("an asynchronous job says so, and its ps how stale the gradients were") {
  ProcessStatus chief = Parse(kTraining);
  chief.mutable_job()->set_asynchronous(true);
  CHECK_THAT(StatusTable(chief), Contains("12 stale; asynchronous, each gradient is a step; last"));
  CHECK_THAT(StatusTable(Parse("role: 'ps' shard { staleness: [1200, 3, 0, 1] }")),
             Contains("staleness 0: 1,200, 1: 3, 2-3: 0, 4-7: 1\n"));
  CHECK_THAT(StatusTable(Parse("role: 'ps' shard {}")), !Contains("staleness"));
}

}  // namespace
}  // namespace lockstep::deploy
