#include "chief/membership/elastic_replicas.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::chief {
namespace {

constexpr absl::Duration kLease = absl::Seconds(5);
constexpr absl::Duration kDeadline = absl::Seconds(60);

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

// Four workers of a cluster; the first two have begun the job.
struct Fixture {
  explicit Fixture(OnShortage on_shortage = OnShortage::kWait, ReplicaRules rules = Rules())
      : replicas(rules, on_shortage, kDeadline, &membership) {
    Join(0);
    Join(1);
    Confirm();
    REQUIRE(replicas.Begin(GlobalStep(0)));
  }
  static ReplicaRules Rules() { return {.min_replicas = 1, .global_batch = 12}; }

  static Incarnation Of(uint32_t worker) { return Incarnation(100 + worker); }
  void Join(uint32_t worker) {
    REQUIRE(membership.Register(WorkerIndex(worker), Of(worker), "host", 1, now).ok());
  }
  void Report(uint32_t worker, const WorkerReport& report) {
    REQUIRE(membership.Heartbeat(WorkerIndex(worker), Of(worker), report, now).ok());
  }
  // Every shard knows who lives.
  void Confirm() { replicas.SetConfirmed(membership.Live()); }
  // All but these are silent until their lease is over.
  void Lose(const std::vector<uint32_t>& others) {
    const absl::Duration end = now + kLease + absl::Seconds(1);
    for (; now <= end; now += absl::Milliseconds(500)) {
      for (const uint32_t worker : others) Report(worker, {.ready = true});
      membership.Expire(now);
    }
  }
  bool Update(int64_t first) {
    return replicas.Update(GlobalStep(first - 2), GlobalStep(first), now);
  }
  std::vector<uint32_t> Newest() const {
    std::vector<uint32_t> workers;
    for (const WorkerIndex worker : replicas.views().newest().workers) {
      workers.push_back(worker.value());
    }
    return workers;
  }

  Membership membership{{"a:1", "b:1", "c:1", "d:1"}, kLease};
  absl::Duration now = At(1);
  ElasticReplicas replicas;
};

using Workers = std::vector<uint32_t>;

TEST_CASE("the first view has the members that every shard knows") {
  Fixture f;
  CHECK(f.Newest() == Workers{0, 1});
  CHECK(f.replicas.views().newest().number == 1);
  CHECK(f.replicas.RequiredOf(GlobalStep(0)) == 2);
  CHECK_FALSE(f.Update(2));
}

TEST_CASE("the first view waits for as many members as may share the batch") {
  Membership membership({"a:1", "b:1"}, kLease);
  ElasticReplicas replicas({.min_replicas = 2, .global_batch = 12}, OnShortage::kWait, kDeadline,
                           &membership);
  replicas.SetConfirmed({{WorkerIndex(1), Incarnation(1)}});
  CHECK_FALSE(replicas.Begin(GlobalStep(0)));
  CHECK(replicas.views().empty());
}

TEST_CASE("a worker joins when every shard knows it and it is ready") {
  Fixture f;
  f.Join(2);
  f.Report(2, {.ready = true});
  CHECK_FALSE(f.Update(2));
  f.Confirm();
  f.Report(2, {.ready = false});
  CHECK_FALSE(f.Update(2));
  f.Report(2, {.ready = true});
  REQUIRE(f.Update(2));
  CHECK(f.Newest() == Workers{0, 1, 2});
  // Steps that were granted before keep their view.
  CHECK(f.replicas.RequiredOf(GlobalStep(1)) == 2);
  CHECK(f.replicas.RequiredOf(GlobalStep(2)) == 3);
  CHECK_FALSE(f.replicas.ShareOf(GlobalStep(1), WorkerIndex(2)).takes_part());
  CHECK(f.replicas.ShareOf(GlobalStep(2), WorkerIndex(2)) == ReplicaShare{2, 3, 2});
}

TEST_CASE("a view begins after the one before") {
  Fixture f;
  f.Join(2);
  f.Confirm();
  f.Report(2, {.ready = true});
  REQUIRE(f.replicas.Update(GlobalStep(0), GlobalStep(0), f.now));
  CHECK(f.Newest() == Workers{0, 1, 2});
  CHECK(f.replicas.views().newest().first == GlobalStep(1));
}

TEST_CASE("a worker departs: it is left out from a later step on, and needed until then") {
  Fixture f;
  f.Report(0, {.ready = true, .departing = true});
  REQUIRE(f.Update(7));
  CHECK(f.Newest() == Workers{1});
  CHECK(f.replicas.RequiredOf(GlobalStep(6)) == 2);
  CHECK(f.replicas.RequiredOf(GlobalStep(7)) == 1);
  // It does not come back as the same process.
  CHECK_FALSE(f.Update(9));
}

TEST_CASE("nobody departs where too few would be left") {
  Fixture f(OnShortage::kWait, {.min_replicas = 2, .global_batch = 12});
  f.Report(0, {.departing = true});
  CHECK_FALSE(f.Update(7));
  f.Join(2);
  f.Report(2, {.ready = true});
  f.Confirm();
  REQUIRE(f.Update(9));
  CHECK(f.Newest() == Workers{1, 2});
}

TEST_CASE("WAIT: a lost replica is waited for until the deadline") {
  Fixture f;
  f.Lose({1});
  f.Confirm();
  CHECK_FALSE(f.Update(7));
  CHECK(f.replicas.Evaluate(GlobalStep(5)).is_short);
  CHECK(f.replicas.quorum().possible == 1);
  CHECK(f.replicas.quorum().required == 2);
  CHECK_FALSE(f.replicas.quorum().must_end);
  f.now += kDeadline;
  REQUIRE(f.Update(7));
  CHECK(f.Newest() == Workers{1});
  // Its gradients of steps that were granted are given up, too.
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 1);
  CHECK_FALSE(f.replicas.Evaluate(GlobalStep(5)).is_short);
}

TEST_CASE("WAIT: a successor takes the lost replica's place, and the wait begins anew") {
  Fixture f;
  f.Lose({1});
  f.Confirm();
  CHECK_FALSE(f.Update(7));
  REQUIRE(f.membership.Register(WorkerIndex(0), Incarnation(7), "host", 2, f.now).ok());
  CHECK_FALSE(f.Update(7));
  CHECK_FALSE(f.replicas.Evaluate(GlobalStep(5)).is_short);
  f.now += kDeadline;
  f.membership.Expire(f.now);
  CHECK_FALSE(f.Update(7));
  CHECK(f.Newest() == Workers{0, 1});
}

TEST_CASE("SHRINK: a lost replica is left out when no shard has it any more") {
  Fixture f(OnShortage::kShrink);
  f.Lose({1});
  CHECK_FALSE(f.Update(7));
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 2);
  f.Confirm();
  REQUIRE(f.Update(7));
  CHECK(f.Newest() == Workers{1});
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 1);
}

TEST_CASE(
    "a successor that is not ready is waited for in no step that goes on without its replica") {
  Fixture f(OnShortage::kShrink);
  f.Lose({1});
  f.Confirm();
  REQUIRE(f.Update(7));
  REQUIRE(f.membership.Register(WorkerIndex(0), Incarnation(7), "host", 2, f.now).ok());
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 1);
  f.Confirm();  // shards take members before those are ready
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 1);
  const auto report = [&f](bool ready) {
    REQUIRE(f.membership.Heartbeat(WorkerIndex(0), Incarnation(7), {.ready = ready}, f.now).ok());
  };
  report(false);
  CHECK_FALSE(f.Update(8));
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 1);
  report(true);
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 2);
  REQUIRE(f.Update(8));
  CHECK(f.Newest() == Workers{0, 1});
  CHECK(f.replicas.RequiredOf(GlobalStep(7)) == 1);
}

TEST_CASE("one that departs is needed until its view ends, and its successor is not") {
  Fixture f(OnShortage::kShrink);
  f.Report(0, {.departing = true});  // it is not ready yet
  REQUIRE(f.Update(7));
  CHECK(f.replicas.RequiredOf(GlobalStep(6)) == 2);
  f.Lose({1});
  CHECK(f.replicas.RequiredOf(GlobalStep(6)) == 2);  // a shard may have it as a member
  f.Confirm();
  CHECK(f.replicas.RequiredOf(GlobalStep(6)) == 1);
  REQUIRE(f.membership.Register(WorkerIndex(0), Incarnation(7), "host", 2, f.now).ok());
  f.Confirm();
  CHECK(f.replicas.RequiredOf(GlobalStep(6)) == 1);
}

TEST_CASE("a chief that takes over needs one that departs, and not its successor") {
  Membership membership({"a:1", "b:1"}, kLease);
  ElasticReplicas replicas(Fixture::Rules(), OnShortage::kShrink, kDeadline, &membership);
  const WorkerIndex departing(0), other(1);
  membership.Adopt({departing, Incarnation(1)}, At(0));
  membership.Adopt({other, Incarnation(2)}, At(0));
  ReplicaViews views;
  REQUIRE(
      views
          .Add({.number = 1, .first = GlobalStep(4), .workers = {departing, other}, .aggregate = 2})
          .ok());
  REQUIRE(
      views.Add({.number = 2, .first = GlobalStep(7), .workers = {other}, .aggregate = 1}).ok());
  replicas.Adopt(views);
  replicas.SetConfirmed(membership.Live());
  CHECK(replicas.RequiredOf(GlobalStep(6)) == 2);
  REQUIRE(membership.Leave(departing, Incarnation(1), At(1)).ok());
  CHECK(replicas.RequiredOf(GlobalStep(6)) == 2);
  replicas.SetConfirmed(membership.Live());
  CHECK(replicas.RequiredOf(GlobalStep(6)) == 1);
  REQUIRE(membership.Register(departing, Incarnation(3), "host", 1, At(2)).ok());
  replicas.SetConfirmed(membership.Live());
  CHECK(replicas.RequiredOf(GlobalStep(6)) == 1);
}

TEST_CASE("SHRINK: of two that are lost in one step neither holds it up") {
  Fixture f(OnShortage::kShrink);
  for (const uint32_t worker : {2, 3}) f.Join(worker);
  for (const uint32_t worker : {0, 1, 2, 3}) f.Report(worker, {.ready = true});
  f.Confirm();
  REQUIRE(f.Update(3));
  f.Lose({0, 1, 3});
  f.Confirm();
  REQUIRE(f.Update(7));
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 3);
  f.Lose({0, 1});
  f.Confirm();
  REQUIRE(f.Update(7));
  CHECK(f.Newest() == Workers{0, 1});
  CHECK(f.replicas.views().newest().first == GlobalStep(8));
  CHECK(f.replicas.RequiredOf(GlobalStep(5)) == 2);
  CHECK_FALSE(f.replicas.Evaluate(GlobalStep(5)).is_short);
}

TEST_CASE("WAIT: the job goes on where those who live are enough without the lost ones") {
  Fixture f(OnShortage::kWait, {.min_replicas = 2, .global_batch = 12});
  CHECK(f.replicas.HasEnough());
  f.Lose({1});
  f.Confirm();
  CHECK_FALSE(f.replicas.HasEnough());
  f.Join(2);
  CHECK_FALSE(f.replicas.HasEnough());
  f.Report(2, {.ready = true});
  f.Confirm();
  CHECK(f.replicas.HasEnough());
}

TEST_CASE("a goodbye is final, whatever the policy") {
  for (const OnShortage policy : {OnShortage::kWait, OnShortage::kShrink, OnShortage::kAbort}) {
    Fixture f(policy);
    REQUIRE(f.membership.Leave(WorkerIndex(0), Fixture::Of(0), f.now).ok());
    // Before every shard knows it, too.
    CHECK_FALSE(f.replicas.Evaluate(GlobalStep(5)).must_end);
    f.Confirm();
    REQUIRE(f.Update(7));
    CHECK(f.Newest() == Workers{1});
  }
}

TEST_CASE("ABORT: a lost replica ends the job") {
  Fixture f(OnShortage::kAbort);
  f.Lose({1});
  f.Confirm();
  f.now += kDeadline;
  CHECK_FALSE(f.Update(7));
  CHECK(f.replicas.Evaluate(GlobalStep(5)).must_end);
}

TEST_CASE("a worker that the batch does not divide over waits until it does") {
  Fixture f(OnShortage::kShrink, {.min_replicas = 1, .global_batch = 4});
  f.Join(2);
  f.Report(2, {.ready = true});
  f.Confirm();
  CHECK_FALSE(f.Update(3));
  REQUIRE(f.membership.Leave(WorkerIndex(0), Fixture::Of(0), f.now).ok());
  f.Confirm();
  REQUIRE(f.Update(5));
  CHECK(f.Newest() == Workers{1, 2});
}

TEST_CASE("views of steps that are over are forgotten") {
  Fixture f;
  f.Report(0, {.departing = true});
  REQUIRE(f.Update(7));
  f.Join(3);
  f.Report(3, {.ready = true});
  f.Confirm();
  REQUIRE(f.Update(20));
  CHECK(f.replicas.views().At(GlobalStep(6)) == nullptr);
  CHECK(f.replicas.views().At(GlobalStep(18))->number == 2);
  CHECK(f.replicas.RequiredOf(GlobalStep(6)) == 1);
}

TEST_CASE("a chief that takes over waits for a replica that it does not know, as for a lost one") {
  Membership membership({"a:1"}, kLease);
  REQUIRE(membership.Register(WorkerIndex(0), Incarnation(1), "host", 1, At(0)).ok());
  ElasticReplicas replicas(Fixture::Rules(), OnShortage::kWait, kDeadline, &membership);
  ReplicaViews views;
  REQUIRE(views
              .Add({.number = 3,
                    .first = GlobalStep(4),
                    .workers = {WorkerIndex(0), WorkerIndex(7)},
                    .aggregate = 2})
              .ok());
  replicas.Adopt(views);
  replicas.SetConfirmed(membership.Live());
  CHECK_FALSE(replicas.Update(GlobalStep(8), GlobalStep(10), At(1)));
  CHECK(replicas.Evaluate(GlobalStep(8)).is_short);
  REQUIRE(replicas.Update(GlobalStep(8), GlobalStep(10), At(1) + kDeadline));
  CHECK(replicas.views().newest().workers == std::vector<WorkerIndex>{WorkerIndex(0)});
  CHECK(replicas.views().newest().number == 4);
}

}  // namespace
}  // namespace lockstep::chief
