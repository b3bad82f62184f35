// TensorFlow's tests of the SyncReplicasOptimizer (sync_replicas_optimizer_test.py), by their
// names: two ps, one of them with a dense and a sparse variable, tokens FIFO, as many initial
// tokens as workers.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "absl/strings/match.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;
using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

// Worker w pushes 0.1 + 0.2 w for v0, 0.9 + 0.2 w for v1 and {row 1: 0.1 + 0.2 w} for v_sparse.
class SyncReplicas {
 public:
  SyncReplicas(uint32_t total, uint32_t aggregate) : aggregate_(aggregate) {
    CreateVariablesRequest plan =
        PlanOf(PlacementOf(
                   {{.name = "v0", .dims = {1}, .shard = 0},
                    {.name = "v1", .dims = {1}, .shard = 1, .initial = 1},
                    {.name = "v_sparse", .dims = {2, 1}, .shard = 1, .initial = 4, .sparse = true}},
                   2),
               total, aggregate, FIFO);
    plan.set_init_tokens(total);
    for (uint32_t ps = 0; ps < 2; ++ps) {
      REQUIRE(ps_[ps].shard.SetView(test::ViewOf(total, ps)).ok());
      REQUIRE(ps_[ps].shard.CreateVariables(plan).ok());
    }
    for (uint32_t worker = 0; worker < total; ++worker) local_step_[worker] = 0;
    Grant();
  }

  // One training step of a worker, as far as it gets: all pushes, then a token.
  void Run(uint32_t worker) {
    REQUIRE_FALSE(IsWaiting(worker));
    const float g = 0.1f + 0.2f * static_cast<float>(worker);
    const auto message = [&] {
      return Message(IdentityOf(worker), runs_ + 1, local_step_[worker]);
    };
    REQUIRE(ps_[0].shard.Push(message().Whole(0, Shape({1}), {g}).Ready()).ok());
    REQUIRE(
        ps_[1]
            .shard
            .Push(
                message().Whole(1, Shape({1}), {g + 0.8f}).Rows(2, Shape({2, 1}), {1}, {g}).Ready())
            .ok());
    CommitIfClosed();
    tokens_.insert_or_assign(worker, ps_[0].Dequeue(worker, ++runs_));
    CollectTokens();
  }

  bool IsWaiting(uint32_t worker) const { return tokens_.contains(worker); }
  int64_t global_step() const { return ps_[0].shard.Report().state.global_step.value(); }
  int64_t local_step(uint32_t worker) const { return local_step_.at(worker); }
  float v0() { return ps_[0].Read(global_step(), 0)[0]; }
  float v1() { return ps_[1].Read(global_step(), 1)[0]; }
  std::vector<float> v_sparse() { return ps_[1].Read(global_step(), 2); }

 private:
  void Grant() {
    closed_.clear();
    for (Harness& ps : ps_) closed_.push_back(ps.Grant(global_step(), aggregate_, 2.0f));
  }
  void CommitIfClosed() {
    if (closed_[0].IsParked() || closed_[1].IsParked()) return;
    REQUIRE(ps_[0].shard.CommitStep(kCommand, GlobalStep(global_step()), false).ok());
    Grant();
  }
  void CollectTokens() {
    for (auto token = tokens_.begin(); token != tokens_.end();) {
      if (token->second.IsParked()) {
        ++token;
      } else {
        local_step_[token->first] = token->second->step.value();
        token = tokens_.erase(token);
      }
    }
  }

  const uint32_t aggregate_;
  Harness ps_[2];
  uint64_t runs_ = 0;
  std::vector<Reply<ClosedStep>> closed_;
  std::map<uint32_t, int64_t> local_step_;
  std::map<uint32_t, Reply<Token>> tokens_;
};

TEST_CASE("test2Workers") {
  SyncReplicas job(2, 2);
  CHECK(job.v0() == 0);
  CHECK(job.v1() == 1);
  CHECK(job.v_sparse() == std::vector<float>{4, 4});
  CHECK(job.global_step() == 0);

  job.Run(0);
  job.Run(1);
  CHECK(job.global_step() == 1);
  CHECK(job.v0() == Approx(0 - (0.1 + 0.3) / 2 * 2.0));
  CHECK(job.v1() == Approx(1 - (0.9 + 1.1) / 2 * 2.0));
  CHECK(job.v_sparse()[0] == 4);
  CHECK(job.v_sparse()[1] == Approx(4 - (0.1 + 0.3) / 2 * 2.0));
  CHECK(job.local_step(0) == 0);
  CHECK(job.local_step(1) == 0);

  // The rest of the initial tokens: both runs are wasted.
  job.Run(0);
  job.Run(1);
  CHECK(job.global_step() == 1);
  CHECK(job.local_step(0) == 1);
  CHECK(job.local_step(1) == 1);
  CHECK(job.v0() == Approx(-0.4));
  CHECK(job.v1() == Approx(-1.0));

  job.Run(0);
  CHECK(job.IsWaiting(0));
  job.Run(1);
  CHECK(job.global_step() == 2);
  CHECK(job.v0() == Approx(-0.8));
  CHECK(job.v1() == Approx(-3.0));
  CHECK_FALSE(job.IsWaiting(0));
}

TEST_CASE("test3Workers1Backup") {
  SyncReplicas job(3, 2);
  job.Run(0);
  CHECK(job.global_step() == 0);
  job.Run(2);
  CHECK(job.global_step() == 1);
  CHECK(job.local_step(0) == 0);
  CHECK(job.v0() == Approx(0 - (0.1 + 0.5) / 2 * 2.0));
  CHECK(job.v1() == Approx(1 - (0.9 + 1.3) / 2 * 2.0));

  // The backup comes late, and then the initial tokens are used up: all stale.
  for (const uint32_t worker : {1, 0, 1, 2}) job.Run(worker);
  CHECK(job.global_step() == 1);
  CHECK(job.local_step(1) == 1);
  CHECK(job.v0() == Approx(-0.6));
  CHECK(job.v1() == Approx(-1.2));

  job.Run(0);
  CHECK(job.global_step() == 1);
  job.Run(1);
  CHECK(job.global_step() == 2);
  CHECK(job.v0() == Approx(-0.6 - (0.1 + 0.3) / 2 * 2.0));
  CHECK(job.v1() == Approx(-1.2 - (0.9 + 1.1) / 2 * 2.0));
}

TEST_CASE("testErrorIfUsedBeforeMinimizeCalled") {
  // What a chief and a worker do before the variables exist is refused, and says so.
  Harness f;
  REQUIRE(f.shard.SetView(test::ViewOf(1)).ok());
  for (const absl::Status& status : {f.Grant(0, 1).status(), f.Dequeue(0, 1).status(),
                                     f.shard.CommitStep(kCommand, GlobalStep(0), false).status()}) {
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(absl::StrContains(status.message(), "variables have not been created"));
  }
}

TEST_CASE("testCanCreatedBeforeMinimizeCalled") {
  Harness f;
  REQUIRE(f.shard.SetView(test::ViewOf(1)).ok());
  CHECK(absl::IsFailedPrecondition(f.Grant(0, 1).status()));
  REQUIRE(f.shard.CreateVariables(test::OneVariable()).ok());
  CHECK(f.Grant(0, 1).IsParked());
}

TEST_CASE("testFetchVariableList") {
  CreateVariablesRequest plan = test::OneVariable();
  plan.mutable_optimizer()->mutable_adam();
  Harness f(plan);
  const TemporaryFolder folder;
  const auto closed =
      f.Grant({.command = kCommand, .step = GlobalStep(0), .learning_rate = 1, .keep_slots = true});
  f.Push(0, 1, 0, 0, {1});
  REQUIRE_FALSE(closed.IsParked());
  const auto saved = f.shard.Save(kCommand, GlobalStep(1), folder.path());
  REQUIRE(saved.ok());
  std::vector<std::string> names;
  for (const TensorRecord& tensor : saved->tensors) names.push_back(tensor.name);
  for (const char* name : {"w", "optimizer/beta1_power", "optimizer/beta2_power"}) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
}

TEST_CASE("a chief that goes on after the last step finds its tokens again") {
  const TokenPolicy policy = GENERATE(FIFO, PER_REPLICA);
  CreateVariablesRequest plan = test::OneVariable(1, 1, policy);
  plan.set_init_tokens(0);
  Harness f(plan);
  const auto grant = [&](int64_t step, Term term, bool last) {
    return f.Grant({.command = test::CommandOf(test::kJob, term.value()),
                    .step = GlobalStep(step),
                    .learning_rate = 1,
                    .commit = true,
                    .last = last});
  };
  const auto closed = grant(0, Term(1), true);
  f.Push(0, 1, 0, 0, {1});
  REQUIRE_FALSE(closed.IsParked());
  CHECK(f.Dequeue(0, 1)->done);

  View view = test::ViewOf(1);
  view.command.set_term(2);
  view.members[0].incarnation = Incarnation(55);
  REQUIRE(f.shard.SetView(view).ok());
  REQUIRE(grant(1, Term(2), false).IsParked());
  WorkerIdentity successor = IdentityOf(0);
  successor.incarnation = Incarnation(55);
  Reply<Token> token;
  f.shard.DequeueToken({successor, DequeueSeq(1)}, token.done());
  REQUIRE_FALSE(token.IsParked());
  CHECK(token->step == GlobalStep(1));
  CHECK_FALSE(token->done);
}

}  // namespace
}  // namespace lockstep::ps
