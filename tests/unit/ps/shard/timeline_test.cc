// The timelines of TensorFlow's SyncReplicasOptimizer (one scalar variable, FIFO tokens), row by
// row: who runs with which stamp, whether its gradient counts, where the job and the accumulator
// stand, and which stamp the worker leaves with.
#include <catch2/catch.hpp>
#include <map>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::kJob;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

constexpr int64_t kWaits = -1;

struct Row {
  uint32_t worker;
  int64_t stamp;
  PushStatus verdict;
  int64_t global_step;
  uint32_t count;                      // accumulated after the run
  std::map<uint32_t, int64_t> stamps;  // worker -> stamp afterwards, of those that it changes
};

class Cluster {
 public:
  Cluster(uint32_t total, uint32_t aggregate, int64_t init_tokens)
      : harness_([&] {
          CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {1}}}), total, aggregate, FIFO);
          plan.set_init_tokens(init_tokens);
          return plan;
        }()),
        required_(aggregate) {
    for (uint32_t worker = 0; worker < total; ++worker) stamps_[worker] = 0;
    Grant();
    Grant();
  }

  // One run: push with the stamp, then wait for a token.
  void Run(const Row& row) {
    CHECK(stamps_[row.worker] == row.stamp);
    ++runs_;
    const PushStatus verdict = harness_.Push(row.worker, runs_, stamps_[row.worker], 0, {1});
    CHECK(verdict == row.verdict);
    tokens_.insert_or_assign(row.worker, harness_.Dequeue(row.worker, runs_));
    for (auto& [worker, token] : tokens_) {
      stamps_[worker] = token.IsParked() ? kWaits : token->step.value();
    }
    const ShardReport report = harness_.shard.Report();
    CHECK(report.state.global_step == GlobalStep(row.global_step));
    CHECK(report.state.shard_step == GlobalStep(row.global_step));
    REQUIRE(report.pending.size() == 1);
    CHECK(report.pending[0].have == row.count);
    for (const auto& [worker, stamp] : row.stamps) CHECK(stamps_[worker] == stamp);
    while (granted_ < report.state.global_step.value() + 2) Grant();
  }

  void Run(const std::vector<Row>& rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      INFO("row " << i + 1);
      Run(rows[i]);
    }
  }

  ShardReport Report() const { return harness_.shard.Report(); }

 private:
  void Grant() {
    harness_.Grant({.command = test::CommandOf(test::kJob, 1),
                    .step = GlobalStep(granted_++),
                    .required = required_,
                    .learning_rate = 0.1f,
                    .commit = true});
  }

  Harness harness_;
  const uint32_t required_;
  int64_t granted_ = 0;
  uint64_t runs_ = 0;
  std::map<uint32_t, int64_t> stamps_;
  std::map<uint32_t, Reply<Token>> tokens_;
};

constexpr PushStatus kAccept = PushStatus::kAccepted;
constexpr PushStatus kDrop = PushStatus::kStale;

TEST_CASE("timeline (a): two replicas, both needed, two initial tokens") {
  Cluster cluster(2, 2, -1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {1, 0, kAccept, 1, 0, {{1, 0}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {1, 0, kDrop, 1, 0, {{1, 1}}},
      {0, 1, kAccept, 1, 1, {{0, kWaits}}},
      {1, 1, kAccept, 2, 0, {{0, 2}, {1, 2}}},
      {0, 2, kAccept, 2, 1, {{0, kWaits}}},
      {1, 2, kAccept, 3, 0, {{0, 3}, {1, 3}}},
      {1, 3, kAccept, 3, 1, {{1, kWaits}}},
      {0, 3, kAccept, 4, 0, {{0, 4}, {1, 4}}},
  });
  CHECK(cluster.Report().stale == 2);
}

TEST_CASE("timeline (a), one replica twice in the first step") {
  Cluster cluster(2, 2, -1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {0, 0, kAccept, 1, 0, {{0, 0}}},
      {1, 0, kDrop, 1, 0, {{1, 1}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {0, 1, kAccept, 1, 1, {{0, kWaits}}},
      {1, 1, kAccept, 2, 0, {{0, 2}, {1, 2}}},
  });
}

TEST_CASE("timeline (a), without initial tokens nothing is wasted") {
  Cluster cluster(2, 2, 0);
  for (int64_t step = 0; step < 5; ++step) {
    cluster.Run({
        {0, step, kAccept, step, 1, {{0, kWaits}}},
        {1, step, kAccept, step + 1, 0, {{0, step + 1}, {1, step + 1}}},
    });
  }
  CHECK(cluster.Report().stale == 0);
}

TEST_CASE("timeline (b): three replicas, one of them a backup") {
  Cluster cluster(3, 2, -1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {2, 0, kAccept, 1, 0, {{2, 0}}},
      {1, 0, kDrop, 1, 0, {{1, 1}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {2, 0, kDrop, 1, 0, {{2, 1}}},
      {0, 1, kAccept, 1, 1, {{0, kWaits}}},
      {1, 1, kAccept, 2, 0, {{0, 2}, {1, 2}}},
      {2, 1, kDrop, 2, 0, {{2, 2}}},
      {0, 2, kAccept, 2, 1, {{0, kWaits}}},
      {1, 2, kAccept, 3, 0, {{0, 3}, {1, 3}}},
      {2, 2, kDrop, 3, 0, {{2, 3}}},
  });
}

TEST_CASE("timeline (b), with as many initial tokens as replicas one more is wasted") {
  Cluster cluster(3, 2, 3);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {2, 0, kAccept, 1, 0, {{2, 0}}},
      {1, 0, kDrop, 1, 0, {{1, 0}}},
      {1, 0, kDrop, 1, 0, {{1, 1}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {2, 0, kDrop, 1, 0, {{2, 1}}},
  });
  CHECK(cluster.Report().stale == 4);
}

TEST_CASE("timeline (b), the backup dead: the others use its tokens and waste one run a step") {
  Cluster cluster(3, 2, -1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {1, 0, kAccept, 1, 0, {{1, 0}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {1, 0, kDrop, 1, 0, {{1, 1}}},
      {0, 1, kAccept, 1, 1, {{0, 1}}},  // takes the dead one's token
      {0, 1, kAccept, 2, 0, {{0, 2}}},  // and counts twice in this step
      {1, 1, kDrop, 2, 0, {{1, 2}}},
      {0, 2, kAccept, 2, 1, {{0, 2}}},
      {1, 2, kAccept, 3, 0, {{1, 3}}},
      {0, 2, kDrop, 3, 0, {{0, 3}}},
  });
}

TEST_CASE("timeline (c): one replica drives a step of two gradients") {
  Cluster cluster(1, 2, -1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {0, 0, kAccept, 1, 0, {{0, 0}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {0, 1, kAccept, 1, 1, {{0, 1}}},
      {0, 1, kAccept, 2, 0, {{0, 2}}},
      {0, 2, kAccept, 2, 1, {{0, 2}}},
      {0, 2, kAccept, 3, 0, {{0, 3}}},
  });
  CHECK(cluster.Report().stale == 1);
}

TEST_CASE("timeline (c), with the fewest tokens nothing is dropped") {
  Cluster cluster(1, 2, 1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {0, 0, kAccept, 1, 0, {{0, 1}}},
      {0, 1, kAccept, 1, 1, {{0, 1}}},
      {0, 1, kAccept, 2, 0, {{0, 2}}},
  });
  CHECK(cluster.Report().stale == 0);
}

TEST_CASE("timeline (d): declared for two, one alive: it drives the training alone") {
  Cluster cluster(2, 2, -1);
  cluster.Run({
      {0, 0, kAccept, 0, 1, {{0, 0}}},
      {0, 0, kAccept, 1, 0, {{0, 0}}},
      {0, 0, kDrop, 1, 0, {{0, 1}}},
      {0, 1, kAccept, 1, 1, {{0, 1}}},
      {0, 1, kAccept, 2, 0, {{0, 2}}},
  });
  Cluster deadlocked(2, 2, 0);
  deadlocked.Run({{0, 0, kAccept, 0, 1, {{0, kWaits}}}});
}

}  // namespace
}  // namespace lockstep::ps
