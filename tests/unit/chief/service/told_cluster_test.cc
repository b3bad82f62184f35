// What workers are told of a cluster spec that changes while they train.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief::worker_calls_test {
namespace {

ClusterSpec Moved() {
  ClusterSpec moved = kCluster;
  moved.ps[0] = "127.0.0.2:1";
  return moved;
}

TEST_CASE("a changed cluster spec is told at once, and once, to each worker that trains") {
  Fixture f;
  f.Train();
  // A chief may have another one than the chief before: the first answer tells it.
  const auto first = f.Beat(0, 10);
  CHECK_FALSE(first->has_value());
  f.Pass(absl::Seconds(2));
  REQUIRE(first->has_value());
  CHECK((*first)->value().cluster().ps(0) == kCluster.ps[0]);
  f.Receive(10, first);
  const auto parked = f.Beat(0, 10);
  CHECK_FALSE(parked->has_value());
  f.clusters->Add(Moved().Canonical());
  f.calls.SetCluster(ToProto(Moved()));
  REQUIRE(parked->has_value());
  CHECK((*parked)->value().cluster().ps(0) == "127.0.0.2:1");
  CHECK((*parked)->value().cluster().worker_size() == 2);
  f.Receive(10, parked);
  const auto next = f.Beat(0, 10);
  CHECK_FALSE(next->has_value());
  f.Pass(absl::Seconds(2));
  CHECK_FALSE((*next)->value().has_cluster());
  // The other one hears of it with its next call.
  CHECK((*f.Beat(1, 20))->value().cluster().ps(0) == "127.0.0.2:1");
}

TEST_CASE("a changed cluster spec is told until the worker names a reply that had it") {
  Fixture f;
  f.Train();
  f.Receive(10, f.Beat(0, 10, {{}}));
  f.clusters->Add(Moved().Canonical());
  f.calls.SetCluster(ToProto(Moved()));
  const auto lost = f.Beat(0, 10);
  CHECK((*lost)->value().cluster().ps(0) == "127.0.0.2:1");
  // It names the reply before still. That it has been told is no news: the call is parked.
  const auto again = f.Beat(0, 10);
  CHECK_FALSE(again->has_value());
  f.Pass(absl::Seconds(1.1));
  CHECK((*again)->value().cluster().ps(0) == "127.0.0.2:1");
  f.Receive(10, again);
  const auto next = f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  CHECK_FALSE((*next)->value().has_cluster());
}

TEST_CASE("workers with the spec before or the new one register, others do not") {
  Fixture f;
  f.Begin();
  ClusterSpec other = kCluster;
  other.workers[1] = "127.0.0.9:3";
  CHECK(absl::IsFailedPrecondition((*f.Register(0, 10, Moved().Canonical()))->status()));
  f.clusters->Add(Moved().Canonical());
  f.calls.SetCluster(ToProto(Moved()));
  CHECK((*f.Register(0, 10, Moved().Canonical()))->value().cluster().ps(0) == "127.0.0.2:1");
  CHECK((*f.Register(1, 20, kCluster.Canonical()))->value().cluster().ps(0) == "127.0.0.2:1");
  const absl::Status refused = (*f.Register(1, 30, other.Canonical()))->status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::Matchers::Contains("worker 1 is 127.0.0.1:3 in the chief's and 127.0.0.9:3") &&
                 Catch::Matchers::Contains("SIGHUP"));
}

TEST_CASE("a worker that has moved is known by its new address") {
  Fixture f;
  f.Train();
  ClusterSpec moved = kCluster;
  moved.workers[1] = "127.0.0.9:3";
  f.clusters->Add(moved.Canonical());
  const bool is_gone = GENERATE(true, false);
  if (is_gone) f.Leave(1, 20);
  f.Pass(absl::Seconds(4));
  f.Beat(0, 10);
  const auto parked = f.Register(1, 21, moved.Canonical());
  // While the lease of the one before lasts, it may be a second one by mistake.
  CHECK(f.membership.members()[1].address == (is_gone ? "127.0.0.9:3" : kCluster.workers[1]));
  f.Pass(absl::Milliseconds(1500));
  REQUIRE(parked->has_value());
  CHECK((*parked)->value().ready());
  CHECK(f.membership.members()[1].address == "127.0.0.9:3");
}

TEST_CASE("a worker that the cluster cannot have makes no room for itself") {
  Fixture f;
  const std::string ours = kCluster.Canonical();
  RegisterTaskRequest request;
  request.set_incarnation(10);
  request.set_version(kVersion);
  request.add_earlier_clusters(ours);
  const auto refusal = [&request](WorkerCalls* calls) {
    auto [got, answer] = Arm<RegisterTaskReply>();
    calls->Register(request, std::move(answer));
    REQUIRE(got->has_value());
    return (*got)->status();
  };
  request.set_worker(2);
  request.set_cluster(absl::StrCat(ours, "worker 2 127.0.0.1:5\n"));
  CHECK(absl::IsInvalidArgument(refusal(&f.calls)));
  CHECK(f.membership.members().size() == 2);
  WorkerCalls elastic{kRun,
                      ToldCluster(f.clusters, ToProto(kCluster)),
                      &f.membership,
                      nullptr,
                      &f.clock,
                      {.members_changed = [] {},
                       .admitted = [](const LiveMember&) { return true; },
                       .share_of = [](GlobalStep, WorkerIndex) { return StepShare(); },
                       .waiting_for = [] { return ""; }}};
  for (const uint32_t index : {65'536u, 4'294'967'295u}) {
    request.set_worker(index);
    request.set_cluster(absl::StrCat(ours, "worker ", index, " 127.0.0.1:5\n"));
    CHECK(absl::IsInvalidArgument(refusal(&elastic)));
    CHECK(f.membership.members().size() == 2);
  }
}

}  // namespace
}  // namespace lockstep::chief::worker_calls_test
