// What a run tells about itself: the cause first, and nothing that only waits for it.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/job/summary.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

// A heartbeat that says what the worker waits for; empty: it computes.
void BeatWaiting(JobFixture* f, uint32_t worker, uint64_t incarnation, int64_t step,
                 const std::string& waiting_for) {
  HeartbeatRequest request;
  request.set_job_id(9);
  request.set_worker(worker);
  request.set_incarnation(incarnation);
  request.set_local_step(step);
  request.set_waiting_for(waiting_for);
  f->Beat(request);
}

TEST_CASE("a ps that answers is up while another one is missing") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.cluster.ps = {"127.0.0.1:1", "127.0.0.1:5"};
  plan.placement.set_shards(2);
  ScriptedPs first;
  ScriptedPs second;
  ManualExecutor executor;
  ManualClock clock;
  JobController job(
      plan, {.job_id = 1, .patience = absl::Seconds(20)}, {&first, &second}, &executor, &clock,
      [] {}, [](const absl::Status&) {});
  const auto shard = [&](int i) {
    ProcessStatus status;
    job.FillStatus(&status);
    return status.job().shards(i);
  };
  job.Start();
  CHECK(shard(0).state() == "unreachable");
  first.get_view.Answer(SetViewReply());
  second.get_view.Answer(absl::UnavailableError("ps 1 (127.0.0.1:5) is not available: refused"));
  executor.Run();
  CHECK(shard(0).state() == "up");
  CHECK(shard(0).problem().empty());
  CHECK(shard(1).state() == "unreachable");
  CHECK(shard(1).problem() == "ps 1 (127.0.0.1:5) is not available: refused");
}

TEST_CASE("a ps that has moved before the job begins is named by its new address") {
  JobPlan plan = TwoWorkerPlan(10);
  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  JobController job(
      plan, {.job_id = 9}, {&ps}, &executor, &clock, [] {}, [](const absl::Status&) {});
  job.Start();
  plan.cluster.ps[0] = "moved:9";
  job.SetCluster(plan.cluster);
  ProcessStatus status;
  job.FillStatus(&status);
  CHECK(status.waiting_for() == "the ps: ps 0 (moved:9) has not answered yet");
  CHECK(status.job().shards(0).address() == "moved:9");
  CHECK(status.job().shards(0).problem() == "ps 0 (moved:9) has not answered yet");
}

TEST_CASE("a ps that answered is asked again while another one is missing: so it knows of us") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.cluster.ps = {"127.0.0.1:1", "127.0.0.1:5"};
  plan.placement.set_shards(2);
  ScriptedPs first;
  ScriptedPs second;
  ManualExecutor executor;
  ManualClock clock;
  JobController job(
      plan, {.job_id = 1, .patience = absl::Seconds(60)}, {&first, &second}, &executor, &clock,
      [] {}, [](const absl::Status&) {});
  job.Start();
  first.get_view.Answer(SetViewReply());
  for (int i = 0; i < 110; ++i) {
    clock.Advance(absl::Milliseconds(100));
    job.Tick();
    executor.Run();
    if (first.get_view.size() > 0) first.get_view.Answer(SetViewReply());
  }
  CHECK(first.get_view.all().size() >= 3);
  CHECK(first.get_view.all().size() <= 6);
  CHECK(first.set_view.size() == 0);
  // Then both are asked anew: the first may have another chief by now.
  second.get_view.Answer(SetViewReply());
  executor.Run();
  first.get_view.Answer(SetViewReply());
  second.get_view.Answer(SetViewReply());
  executor.Run();
  CHECK(first.set_view.size() == 1);
}

TEST_CASE("an unreachable ps ends the training state at once, and comes before all that waits") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Register(1, 20);
  f.Step();
  CHECK(f.Status().state() == "training");
  f.ps.grants.Answer(
      absl::UnavailableError("ps 0 (127.0.0.1:1) is not available: Connection refused"));
  f.Settle();
  BeatWaiting(&f, 0, 10, 1, "the end of step 1");
  BeatWaiting(&f, 1, 20, 1, "the end of step 1");
  CHECK(f.Status().state() == "waiting");
  const std::string waits = f.Status().waiting_for();
  CHECK_THAT(waits, StartsWith("step 1 for 0.0 s: ps 0 (127.0.0.1:1) is not available: Connection "
                               "refused, for 0.0 s"));
  CHECK_THAT(waits, !Contains("worker") && !Contains("gradient"));
  CHECK(f.Status().job().shards(0).state() == "unreachable");
  CHECK_THAT(f.Status().job().shards(0).problem(), Contains("Connection refused"));
}

TEST_CASE("a worker that is missing comes before what the step needs") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Register(1, 20);
  f.Step();
  for (int i = 0; i < 6; ++i) {
    BeatWaiting(&f, 0, 10, 1, "the end of step 1");
    f.Pass(absl::Seconds(1));
  }
  CHECK(f.Status().state() == "waiting");
  CHECK_THAT(f.Status().waiting_for(),
             StartsWith("step 1 for 6.0 s: worker 1 (127.0.0.1:3) was lost 0.") &&
                 Contains("; the step needs 2 gradients of each variable, 1 worker lives and has "
                          "data"));
  CHECK_THAT(f.Status().waiting_for(), !Contains("worker 0"));
}

TEST_CASE("a slow worker is named, those who wait for it are not") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Register(1, 20);
  f.Step();
  for (int i = 0; i < 11; ++i) {
    BeatWaiting(&f, 0, 10, 1, "the end of step 1");
    BeatWaiting(&f, 1, 20, 1, "");
    f.Pass(absl::Seconds(1));
  }
  CHECK_THAT(f.Status().waiting_for(),
             StartsWith("step 1 for 11 s: worker 1 (127.0.0.1:3) computes step 1, last heard "
                        "of 1.0 s ago; the step needs 2 gradients of each variable"));
  CHECK_THAT(f.Status().waiting_for(), !Contains("worker 0"));
}

TEST_CASE("when everybody waits all are named") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Register(1, 20);
  f.Step();
  for (int i = 0; i < 11; ++i) {
    BeatWaiting(&f, 0, 10, 1, "the end of step 1");
    BeatWaiting(&f, 1, 20, 1, "the end of step 1");
    f.Pass(absl::Seconds(1));
  }
  CHECK_THAT(f.Status().waiting_for(), Contains("worker 0") && Contains("worker 1"));
}

TEST_CASE("a worker that is lost waits for nothing") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  BeatWaiting(&f, 0, 10, 0, "the end of step 0");
  CHECK(f.Status().job().members(0).waiting_for() == "the end of step 0");
  for (int i = 0; i < 6; ++i) {
    BeatWaiting(&f, 1, 20, 0, "");
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.Status().job().members(0).state() == "lost");
  CHECK(f.Status().job().members(0).waiting_for().empty());
}

TEST_CASE("a variable in parts is one variable of its ps, and the loss is none") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.placement.clear_variables();
  for (int part = 0; part < 3; ++part) {
    VariableSpec* spec = plan.placement.add_variables();
    spec->set_name(absl::StrCat("table#", part));
    spec->mutable_part()->set_of("table");
    spec->set_id(static_cast<uint32_t>(part));
  }
  VariableSpec* kernel = plan.placement.add_variables();
  kernel->set_name("fc/kernel");
  kernel->set_id(3);
  VariableSpec* frozen = plan.placement.add_variables();
  frozen->set_name("fc/mean");
  frozen->set_id(4);
  frozen->set_frozen(true);
  VariableSpec* loss = plan.placement.add_variables();
  loss->set_name("train/loss");
  loss->set_id(5);
  plan.loss_variable = 5;
  JobFixture f(plan);
  CHECK(f.Status().job().shards(0).variables() == 3);  // the frozen one, too
  // What one gradient of a worker counts: three parts, the kernel and the loss.
  CHECK(f.Status().job().variables_per_gradient() == 5);
}

TEST_CASE("what the user should look at is in status and summary, numbered") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.examples.test = 100;
  plan.job.mutable_evaluation()->set_every_steps(1);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  CHECK(f.Status().job().warnings().empty());
  f.Step(std::numeric_limits<float>::quiet_NaN());
  const JobStatus job = f.Status().job();
  REQUIRE(job.warnings_size() == 2);
  CHECK(job.warnings(0).number() == 1);
  CHECK_THAT(job.warnings(0).text(),
             StartsWith("the loss of step 1 is not a finite number. Remedy: "));
  CHECK(job.warnings(1).number() == 2);
  CHECK_THAT(job.warnings(1).text(), StartsWith("no evaluation at step 2: "));
  const auto summary = nlohmann::json::parse(MakeSummary(f.job->plan(), f.job->record()));
  REQUIRE(summary["warnings"].size() == 2);
  CHECK(summary["warnings"][0]["text"] == job.warnings(0).text());
  CHECK(summary["warnings"][1]["number"] == 2);
  CHECK(summary["loss"].is_null());
  CHECK(summary["variables_per_gradient"] == 2);
}

TEST_CASE("of many warnings the newest are kept, with their numbers") {
  JobPlan plan = TwoWorkerPlan(60);
  plan.examples.test = 100;
  plan.job.mutable_evaluation()->set_every_steps(1);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  for (int i = 0; i < 40; ++i) f.Step();
  const JobStatus job = f.Status().job();
  REQUIRE(job.warnings_size() == 20);
  CHECK(job.warnings(19).number() == 39);
  CHECK(job.warnings(0).number() == 20);
}

TEST_CASE("a worker that is lost is a warning") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  for (int i = 0; i < 6; ++i) {
    f.Beat(1, 20);
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.Status().job().warnings_size() == 1);
  CHECK_THAT(f.Status().job().warnings(0).text(),
             StartsWith("worker 0 (127.0.0.1:2) is lost: silent for 5."));
}

TEST_CASE("a run that starts from a checkpoint tells so, and of which step its loss will be") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.start = GlobalStep(2);
  plan.restore_from = "/c/ckpt-2";
  JobFixture f(plan);
  CHECK(f.Status().job().start_step() == 2);
  CHECK(f.Status().job().restored_from() == "/c/ckpt-2");
}

TEST_CASE("an evaluation says what it measured") {
  JobPlan plan = TwoWorkerPlan(2);
  plan.is_classifier = false;
  plan.job.mutable_evaluation()->set_use_averages(true);
  plan.examples.test = 100;
  plan.job.mutable_evaluation()->set_every_steps(1);
  JobFixture f(plan);
  f.Register(0, 10);
  const auto heartbeat = f.Beat(0, 10);
  f.Step();
  REQUIRE((**heartbeat)->leases_size() == 1);
  const EvaluationLease lease = (**heartbeat)->leases(0);
  EvaluationResult result;
  result.set_lease(lease.id());
  result.set_examples(lease.end() - lease.begin());
  result.set_loss_sum(25);
  f.Beat(0, 10, {result});
  REQUIRE(f.Status().job().evaluations_size() == 1);
  CHECK(f.Status().job().evaluations(0).regression());
  CHECK(f.Status().job().evaluations(0).averages());
  const auto summary = nlohmann::json::parse(MakeSummary(f.job->plan(), f.job->record()));
  CHECK(summary["evaluations"][0]["averages"] == true);
  CHECK(summary["evaluations"][0]["accuracy"].is_null());
  CHECK(summary["test_averages"] == true);
}

}  // namespace
}  // namespace lockstep::chief
