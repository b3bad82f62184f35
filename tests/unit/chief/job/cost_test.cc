// What steps and heartbeats cost the chief, in CPU time of its thread: compared, never absolute,
// and with room for a machine that does other things.
#include <time.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/job/job_controller.h"
#include "common/base/version.h"
#include "common/log/log.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

constexpr int kRounds = 7;

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of the quickest of some rounds.
template <typename Work>
double Cost(Work work) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const double before = CpuSeconds();
    work();
    least = std::min(least, CpuSeconds() - before);
  }
  return least;
}

struct Size {
  int workers = 16;
  int ps = 4;
  int variables = 10;
  int64_t elements = 1;
  bool evaluates = false;  // beside every step
};

// A job that trains: all workers are there, all shards wait for gradients.
class Training {
 public:
  explicit Training(const Size& size) : size_(size) {
    REQUIRE(log::Init("chief", "error").ok());
    for (int i = 0; i < size.ps; ++i) shards_.push_back(std::make_unique<ScriptedPs>());
    std::vector<PsControl*> pointers;
    for (const auto& shard : shards_) pointers.push_back(shard.get());
    job_.emplace(
        Plan(), JobOptions{.job_id = 9, .patience = absl::Seconds(60)}, pointers, &executor_,
        &clock_, [] {}, [this](const absl::Status& status) { end_ = status; });
    job_->Start();
    Settle();
    for (int worker = 0; worker < size.workers; ++worker) Register(worker);
    Settle();
    REQUIRE(shards_.front()->grants.size() > 0);
  }

  // Every shard has closed the step.
  void Step() {
    for (const auto& shard : shards_) {
      GrantReply reply;
      reply.set_step(shard->grants.front().step());
      reply.set_shard_step(reply.step() + 1);
      shard->grants.Answer(reply);
    }
    executor_.Run();
    if (shards_.size() > 1) {
      CommitStepReply reply;
      reply.set_global_step(shards_.front()->commits.front().step() + 1);
      shards_.front()->commits.Answer(reply);
      executor_.Run();
    }
  }
  // One of every worker.
  void Heartbeats() {
    clock_.Advance(absl::Seconds(1));
    for (int worker = 0; worker < size_.workers; ++worker) {
      HeartbeatRequest request;
      request.set_job_id(9);
      request.set_worker(static_cast<uint32_t>(worker));
      request.set_incarnation(IncarnationOf(worker));
      job_->worker_calls()->Heartbeat(
          request, Answer<HeartbeatReply>([this](const absl::StatusOr<HeartbeatReply>& reply) {
            failed_ |= !reply.ok();
            leases_ += reply.ok() ? reply->leases_size() : 0;
          }));
    }
    executor_.Run();
    job_->Tick();
  }
  int leases() const { return leases_; }
  bool is_well() const { return !failed_ && !end_.has_value(); }

 private:
  static uint64_t IncarnationOf(int worker) { return static_cast<uint64_t>(100 + worker); }

  JobPlan Plan() const {
    JobPlan plan;
    for (int i = 0; i < size_.ps; ++i) plan.cluster.ps.push_back(absl::StrCat("127.0.0.1:", i + 1));
    for (int i = 0; i < size_.workers; ++i) {
      plan.cluster.workers.push_back(absl::StrCat("127.0.0.1:", 1000 + i));
    }
    plan.cluster.chief = "127.0.0.1:999";
    plan.job.set_towers(1);
    plan.job.set_batch_per_tower(16);
    plan.job.mutable_sync()->set_replicas_to_aggregate(static_cast<uint32_t>(size_.workers));
    plan.placement.set_shards(static_cast<uint32_t>(size_.ps));
    for (int i = 0; i < size_.variables; ++i) {
      VariableSpec* variable = plan.placement.add_variables();
      variable->set_id(static_cast<uint32_t>(i));
      variable->set_name(absl::StrCat("v", i));
      variable->add_dims(size_.elements);
      variable->set_shard(static_cast<uint32_t>(i % size_.ps));
    }
    if (size_.evaluates) {
      plan.job.mutable_evaluation()->set_every_steps(1);
      plan.examples.test = 256 * 4 * size_.workers;
    }
    plan.max_steps = GlobalStep(1'000'000);
    plan.epoch = Epoch(1);
    plan.learning_rate = [](GlobalStep) { return 0.1f; };
    return plan;
  }

  void Register(int worker) {
    RegisterTaskRequest request;
    request.set_worker(static_cast<uint32_t>(worker));
    request.set_incarnation(IncarnationOf(worker));
    request.set_cluster(job_->plan().cluster.Canonical());
    request.set_version(kVersion);
    job_->worker_calls()->Register(
        request, Answer<RegisterTaskReply>([this](const absl::StatusOr<RegisterTaskReply>& reply) {
          failed_ |= !reply.ok();
        }));
  }
  void Settle() {
    executor_.Run();
    for (bool any = true; std::exchange(any, false);) {
      for (const auto& shard : shards_) {
        any |= shard->get_view.size() + shard->set_view.size() + shard->create.size() > 0;
        if (shard->get_view.size() > 0) shard->get_view.Answer(SetViewReply());
        if (shard->set_view.size() > 0) shard->set_view.Answer(WithVariables());
        if (shard->create.size() > 0) shard->create.Answer(CreateVariablesReply());
      }
      executor_.Run();
    }
  }

  const Size size_;
  std::vector<std::unique_ptr<ScriptedPs>> shards_;
  ManualExecutor executor_;
  ManualClock clock_;
  std::optional<absl::Status> end_;
  bool failed_ = false;
  int leases_ = 0;
  std::optional<JobController> job_;
};

double CostOfSteps(const Size& size) {
  Training training(size);
  training.Step();
  const double cost = Cost([&] {
    for (int step = 0; step < 50; ++step) training.Step();
  });
  CHECK(training.is_well());
  return cost;
}

TEST_CASE("a step costs the chief the same whatever the workers, the variables and their bytes") {
  const double cost = CostOfSteps({});
  CHECK(CostOfSteps({.workers = 512}) < 4 * cost);
  CHECK(CostOfSteps({.variables = 1000}) < 4 * cost);
  CHECK(CostOfSteps({.elements = int64_t{1} << 40}) < 4 * cost);
}

TEST_CASE("a step costs the chief in proportion to the ps") {
  CHECK(CostOfSteps({.ps = 64}) < 3 * (64 / 4) * CostOfSteps({.ps = 4}));
}

TEST_CASE("heartbeats cost the chief in proportion to the workers, during an evaluation, too") {
  for (const bool evaluates : {false, true}) {
    std::vector<double> costs;
    for (const int workers : {32, 1024}) {
      Training training({.workers = workers, .evaluates = evaluates});
      training.Step();
      training.Heartbeats();
      costs.push_back(Cost([&] { training.Heartbeats(); }));
      CHECK(training.is_well());
      if (evaluates) CHECK(training.leases() >= workers);
    }
    CHECK(costs[1] < 4 * (1024 / 32) * costs[0]);
  }
}

}  // namespace
}  // namespace lockstep::chief
