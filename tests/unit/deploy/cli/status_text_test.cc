#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

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

TEST_CASE("a shard without its copy is a warning for as long as it is so") {
  ProcessStatus status = Parse(kTraining);
  CHECK_THAT(StatusTable(status), !Contains("copy"));
  ShardSummary* const shard = status.mutable_job()->mutable_shards(0);
  shard->set_serving_address("a:3");
  shard->set_copy_address("b:7");
  CHECK_THAT(StatusTable(status), Contains("copy at") && Contains("b:7") && !Contains("warning"));
  shard->clear_copy_address();
  shard->set_seconds_without_copy(12);
  CHECK_THAT(StatusTable(status),
             Contains("warning: shard 0 has had no copy for 12 s: if a:3 is lost, the job goes "
                      "back to its checkpoint\n"));
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
  const auto first = progress.NewEvaluations(status);
  REQUIRE(first.size() == 2);
  CHECK(first[1] == "step 1,000: test accuracy 97.50 %, loss 0.1000, on 359 examples");
  CHECK(progress.NewEvaluations(status).empty());
  auto* more = status.mutable_job()->add_evaluations();
  more->set_step(2000);
  CHECK(progress.NewEvaluations(status).size() == 1);
}

TEST_CASE("what no status has shown is told from the summary") {
  JobProgress progress;
  progress.NewEvaluations(Parse(kTraining));
  Summary summary;
  for (int step : {500, 1000, 1500, 2000}) summary.evaluations.emplace_back().set_step(step);
  const auto rest = progress.NewEvaluations(summary);
  REQUIRE(rest.size() == 2);
  CHECK_THAT(rest[0], StartsWith("step 1,500: "));
  CHECK_THAT(rest[1], StartsWith("step 2,000: "));
  CHECK(progress.NewEvaluations(summary).empty());
}

TEST_CASE("evaluations of regressions and of averages say so, and of one example, too") {
  ProcessStatus status = Parse(R"(job {
    evaluations { step: 1 examples: 30 loss: 2.0529 regression: true }
    evaluations { step: 2 examples: 1 loss: 2 accuracy: 0.5 averages: true }
    evaluations { step: 3 examples: 1 loss: nan regression: true averages: true } })");
  status.mutable_job()->mutable_evaluations(2)->set_loss(-std::nan(""));
  CHECK(JobProgress().NewEvaluations(status) ==
        std::vector<std::string>{
            "step 1: test loss 2.0529, on 30 examples",
            "step 2: test accuracy (averages) 50.00 %, loss 2.0000, on 1 example",
            "step 3: test loss (averages) nan, on 1 example"});
}

TEST_CASE("each warning of the chief is told once, whoever tells it first") {
  JobProgress progress;
  const ProcessStatus status = Parse(R"(job { warnings { number: 3 text: 'name: "a"' }
                                              warnings { number: 4 text: "b\033[2J" } })");
  CHECK(progress.NewWarnings(status) ==
        std::vector<std::string>{"warning: name: \"a\"", "warning: b\\x1b[2J"});
  CHECK(progress.NewWarnings(status).empty());
  ProcessStatus successor = status;
  successor.set_incarnation(2);
  CHECK(progress.NewWarnings(successor).size() == 2);
  CHECK(progress.NewWarnings(successor).empty());
  Summary summary;
  for (uint64_t number : {4, 5}) summary.warnings.emplace_back().set_number(number);
  summary.warnings[1].set_text("c");
  CHECK(progress.NewWarnings(summary) == std::vector<std::string>{"warning: c"});
}

TEST_CASE("a job that has made no step has no loss, no speed and no time left") {
  const ProcessStatus status =
      Parse(R"(role: "chief" state: "training" global_step: 40 uptime_seconds: 7
      job { name: "j" max_steps: 100 start_step: 40
            members { state: "absent" } shards { state: "up" } })");
  CHECK(JobProgress::Line(status) == "step 40/100");
  const std::string table = StatusTable(status);
  CHECK_THAT(table, Contains("step 40 of 100, loss -, - steps/s, - examples/s, ETA -\n"));
  CHECK_THAT(table, Contains("; last step -\n"));
  CHECK_THAT(table, !Contains("0.0"));
  CHECK_THAT(StatusTable(Parse("role: 'worker' worker { towers: 1 device: 'cpu' }")),
             Contains("loss -, - examples/s, 0 examples, 1 tower on cpu"));
}

TEST_CASE("a loss that is not finite is shown without a sign") {
  ProcessStatus status = Parse(kTraining);
  status.mutable_job()->set_loss(-std::nan(""));
  CHECK_THAT(JobProgress::Line(status), Contains("loss nan "));
  CHECK_THAT(StatusTable(status), Contains("loss nan, "));
}

TEST_CASE("gradients are those of workers, and of a ps those of single variables") {
  ProcessStatus status = Parse(kTraining);
  status.mutable_job()->set_accepted(10800);
  status.mutable_job()->set_stale(4572);
  status.mutable_job()->set_variables_per_gradient(9);
  status.mutable_job()->mutable_members(0)->set_accepted(5400);
  CHECK_THAT(StatusTable(status), Contains("gradients: 1,200 accepted, 508 stale; "));
  CHECK_THAT(StatusTable(status), Contains("  600  "));
  CHECK_THAT(StatusTable(Parse("role: 'ps' shard { variables: 1 accepted: 7 waiting_pulls: 1 }")),
             Contains("1 variable, ") &&
                 Contains("gradients of single variables: 7 accepted, 0 stale") &&
                 Contains("waiting: 1 pull, 0 token requests"));
}

TEST_CASE("a worker's table says how long its towers waited for data, once they have trained") {
  CHECK_THAT(StatusTable(Parse("role: 'worker' worker { towers: 2 seconds_training: 50 "
                               "seconds_waiting_for_data: 0.625 }")),
             Contains("waited for data: 0.625 s, 1.25 % of training\n"));
  CHECK_THAT(StatusTable(Parse("role: 'worker' worker { towers: 2 }")), !Contains("waited"));
}

TEST_CASE("a worker's table says what its GPUs are used for") {
  CHECK_THAT(
      StatusTable(Parse("role: 'worker' worker { device: 'cuda:0,cuda:1' "
                        "gpus { name: 'cuda:0' memory_bytes: 1536 memory_limit_bytes: 4096 "
                        "bytes_to_device: 512 bytes_to_host: 1024 utilization_percent: 87 "
                        "training_steps: 1203 graph_steps: 1200 "
                        "engines { engine: 3 convolutions: 2 } "
                        "engines { engine: 57 convolutions: 4 } } "
                        "gpus { name: 'cuda:1' } "
                        "gpus { name: 'cuda:2' training_steps: 1 graph_error: 'refused' } }")),
      Contains("\ncuda:0: 1.5 KiB of 4.0 KiB in use, 512 B copied to it, 1.0 KiB from it, "
               "87 % busy, 1,200 of 1,203 steps as CUDA graphs, "
               "convolutions by cuDNN's engines 3 (2), 57 (4)\n"
               "cuda:1: 0 B of 0 B in use, 0 B copied to it, 0 B from it\n"
               "cuda:2: 0 B of 0 B in use, 0 B copied to it, 0 B from it, 0 of 1 step as CUDA "
               "graphs (refused)\n"));
}

TEST_CASE("a worker's table says how its gradients are reduced, where it reduces them") {
  CHECK_THAT(StatusTable(Parse("role: 'worker' worker { towers: 2 reduction: 'COLLECTIVE: why' }")),
             Contains("\ngradients are reduced by COLLECTIVE: why\n"));
  CHECK_THAT(StatusTable(Parse("role: 'worker' worker { towers: 2 }")), !Contains("reduced by"));
}

TEST_CASE("the chief's table shows what went wrong with the last checkpoint, and its warnings") {
  ProcessStatus status = Parse(kTraining);
  status.mutable_job()->set_checkpoint_error("ps 0: disk full");
  status.mutable_job()->set_restored_from("/c/ckpt-7");
  for (int i = 1; i <= 5; ++i) {
    status.mutable_job()->add_warnings()->set_text(std::string("w") + std::to_string(i));
  }
  CHECK_THAT(StatusTable(status),
             Contains("restored from: /c/ckpt-7\ncheckpoint: /c/ckpt-1000\n"
                      "the newest checkpoint could not be written: ps 0: disk full\n"
                      "warning: w3\nwarning: w4\nwarning: w5\n"));
}

TEST_CASE("ps 0 and a standby show who commands") {
  CHECK_THAT(StatusTable(Parse("role: 'ps' shard { command { state: 'none' } }")),
             Contains("no chief has commanded yet\n"));
  CHECK_THAT(StatusTable(Parse("role: 'ps' shard { command { state: 'held' chief: 1 address: 'h:1' "
                               "lease_seconds: 2 lease_left_seconds: 1.64 } }")),
             Contains("chief 1 (h:1) commands, lease 1.6 s of 2.0 s left\n"));
  CHECK_THAT(StatusTable(Parse("role: 'ps' shard { command { state: 'held' } }")),
             Contains("chief 0 commands\n"));
  const std::string standby = StatusTable(Parse(
      "role: 'chief' task: 1 state: 'standby' standby_of { state: 'expired' address: 'h:1' }"));
  CHECK_THAT(standby, StartsWith("chief 1: standby\n"));
  CHECK_THAT(standby, Contains("chief 0 (h:1) commanded; its lease: expired\n"));
  CHECK_THAT(StatusTable(Parse("role: 'chief' standby_of { state: 'unknown' }")),
             Contains("ps 0, which knows who commands, does not answer\n"));
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
