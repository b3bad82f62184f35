#include "chief/service/worker_calls.h"

#include <catch2/catch.hpp>
#include <memory>

#include "common/base/chief_stopping.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"
#include "common/base/version.h"
#include "common/config/cluster_spec.h"
#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

EvaluationResult Result(uint64_t lease, int64_t examples, int64_t correct) {
  EvaluationResult result;
  result.set_lease(lease);
  result.set_examples(examples);
  result.set_correct(correct);
  return result;
}

// Of the first process of worker 0.
HeartbeatRequest BeatOfWorker() {
  HeartbeatRequest beat;
  beat.set_job_id(9);
  beat.set_incarnation(10);
  return beat;
}

TEST_CASE("a registration is parked until the job runs") {
  Fixture f;
  const auto reply = f.Register(0, 10);
  CHECK(f.changes == 1);
  f.Pass(absl::Seconds(1));
  CHECK_FALSE(reply->has_value());
  f.Begin();
  REQUIRE(reply->has_value());
  CHECK((**reply)->ready());
  CHECK((**reply)->job_id() == 9);
  CHECK((**reply)->start_step() == 12);
}

TEST_CASE("a registration that waits for long is told what for, and comes again") {
  Fixture f;
  const auto first = f.Register(0, 10);
  f.Pass(absl::Seconds(2.1));
  REQUIRE(first->has_value());
  CHECK_FALSE((**first)->ready());
  CHECK((**first)->waiting_for() == "worker 1");
  const auto second = f.Register(0, 10);
  CHECK(f.changes == 1);
  f.Begin();
  CHECK((**second)->ready());
}

TEST_CASE("a worker is admitted when every shard knows it, not before") {
  Fixture f;
  f.shards_know = false;
  f.Begin();
  const auto reply = f.Register(0, 10);
  CHECK_FALSE(reply->has_value());
  f.shards_know = true;
  f.calls.AdmitParked();
  CHECK((**reply)->ready());
}

TEST_CASE("another cluster spec or version is refused, naming the entry") {
  Fixture f;
  ClusterSpec other = kCluster;
  other.workers[1] = "127.0.0.1:33";
  const auto spec = f.Register(0, 10, other.Canonical());
  REQUIRE(spec->has_value());
  CHECK((*spec)->status().code() == absl::StatusCode::kFailedPrecondition);
  const std::string message((*spec)->status().message());
  CHECK(message.find("worker 1") != std::string::npos);
  CHECK(message.find("127.0.0.1:33") != std::string::npos);
  const auto version = f.Register(0, 10, kCluster.Canonical(), "0.0.1");
  CHECK((*version)->status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(f.changes == 0);
}

TEST_CASE("a registration with longer text than a limit is refused by its field's name") {
  Fixture f;
  const auto refusal = [&](size_t host, size_t version) {
    RegisterTaskRequest request;
    request.set_worker(1);
    request.set_cluster(kCluster.Canonical());
    request.set_host(std::string(host, 'x'));
    request.set_version(version == 0 ? kVersion : std::string(version, 'x'));
    auto [got, answer] = Arm<RegisterTaskReply>();
    f.calls.Register(request, std::move(answer));
    return got->has_value() ? (*got)->status() : absl::OkStatus();
  };
  CHECK(refusal(limits::kMaxHostBytes, 0).ok());
  CHECK(f.changes == 1);
  const absl::Status host = refusal(limits::kMaxHostBytes + 1, 0);
  CHECK(absl::IsInvalidArgument(host));
  CHECK_THAT(std::string(host.message()),
             StartsWith("RegisterTask.host: expected at most 260 bytes, got 261. Remedy: "));
  CHECK(absl::IsFailedPrecondition(refusal(1, limits::kMaxVersionBytes)));  // another version
  CHECK(absl::IsInvalidArgument(refusal(1, limits::kMaxVersionBytes + 1)));
}

TEST_CASE("text that a worker reports is made printable, and cut at a limit") {
  Fixture f;
  f.Train();
  const auto waiting_for = [&](const std::string& text) {
    HeartbeatRequest beat = BeatOfWorker();
    beat.set_waiting_for(text);
    f.calls.Heartbeat(beat, Arm<HeartbeatReply>().second);
    return f.membership.members()[0].report.waiting_for;
  };
  const std::string most(limits::kMaxWaitingForBytes, 'x');
  CHECK(waiting_for("a\nx") == "a\\nx");
  CHECK(waiting_for(most) == most);
  CHECK(waiting_for(most + "x") == most + "...");

  const auto failure = [&](const std::string& text) {
    ReportErrorRequest error;
    error.set_job_id(9);
    error.set_worker(0);
    error.set_incarnation(10);
    error.set_message(text);
    f.calls.ReportError(error, Arm<ReportErrorReply>().second);
    return std::string(f.failure->message());
  };
  const std::string longest(limits::kMaxErrorBytes, 'x');
  CHECK_THAT(failure("disk\nx"), EndsWith(": disk\\nx"));
  CHECK_THAT(failure(longest), EndsWith(": " + longest));
  CHECK_THAT(failure(longest + "x"), EndsWith(": " + longest + "..."));
}

TEST_CASE("a heartbeat with more results than the limit is refused") {
  Fixture f;
  f.Train();
  HeartbeatRequest beat = BeatOfWorker();
  for (size_t i = 0; i < limits::kMaxEvaluationResults; ++i) beat.add_results();
  for (const bool is_beyond : {false, true}) {
    if (is_beyond) beat.add_results();
    auto [got, answer] = Arm<HeartbeatReply>();
    f.calls.Heartbeat(beat, std::move(answer));
    REQUIRE(got->has_value());
    CHECK(absl::IsInvalidArgument((*got)->status()) == is_beyond);
  }
}

TEST_CASE("as many registrations wait as there are workers, and some that contend") {
  Fixture f;
  const size_t most = kCluster.workers.size() + limits::kMaxContendingRegistrations;
  for (size_t i = 0; i < most; ++i) {
    INFO(i);
    CHECK_FALSE(f.Register(0, 10)->has_value());
  }
  const auto beyond = f.Register(0, 10);
  REQUIRE(beyond->has_value());
  CHECK(absl::IsResourceExhausted((*beyond)->status()));
}

TEST_CASE("a worker that dies while its registration is parked is followed, not taken to live") {
  Fixture f;
  f.shards_know = false;
  f.Begin();
  const auto dead = f.Register(0, 10);
  f.Pass(absl::Milliseconds(200));
  const auto successor = f.Register(0, 11);
  f.Pass(absl::Milliseconds(800));
  f.shards_know = true;
  f.calls.AdmitParked();
  CHECK(dead->has_value());  // nobody hears it
  f.Pass(absl::Milliseconds(1300));
  REQUIRE(successor->has_value());
  CHECK((**successor)->waiting_for().find("pid 17") != std::string::npos);
  const auto again = f.Register(0, 11);
  f.Pass(absl::Milliseconds(200));
  CHECK_FALSE(again->has_value());
}

TEST_CASE("a parked successor is let in when the lease before it ends") {
  Fixture f;
  f.Train();
  f.Pass(absl::Seconds(4.5));
  const auto successor = f.Register(0, 11);
  CHECK_FALSE(successor->has_value());
  f.Pass(absl::Seconds(0.7));
  CHECK(f.membership.members()[0].incarnation == Incarnation(11));
  CHECK(f.membership.members()[0].state == MemberState::kLive);
  f.calls.AdmitParked();
  REQUIRE(successor->has_value());
  CHECK((**successor)->ready());
}

TEST_CASE("a heartbeat is parked for a second and then answered with nothing") {
  Fixture f;
  f.Train();
  const auto reply = f.Beat(0, 10);
  f.Pass(absl::Milliseconds(900));
  CHECK_FALSE(reply->has_value());
  f.Pass(absl::Milliseconds(200));
  REQUIRE(reply->has_value());
  CHECK((**reply)->leases_size() == 0);
  CHECK_FALSE((**reply)->finish());
}

TEST_CASE("the next heartbeat of a worker ends the parked one") {
  Fixture f;
  f.Train();
  const auto first = f.Beat(0, 10);
  const auto second = f.Beat(0, 10);
  CHECK(first->has_value());
  CHECK_FALSE(second->has_value());
}

TEST_CASE("a heartbeat of another job, or of a process that was replaced, is fenced") {
  Fixture f;
  const auto early = f.Beat(0, 10);
  CHECK((*early)->status().code() == absl::StatusCode::kUnavailable);
  f.Train();
  const auto job = f.Beat(0, 10, {}, 8);
  CHECK((*job)->status().code() == absl::StatusCode::kAborted);
  const auto incarnation = f.Beat(0, 11);
  CHECK((*incarnation)->status().code() == absl::StatusCode::kAborted);
  const auto index = f.Beat(7, 10);
  CHECK((*index)->status().code() == absl::StatusCode::kAborted);
}

TEST_CASE("once the members are known, others are sent to register before the job begins") {
  Fixture f;
  f.membership.Adopt({WorkerIndex(0), Incarnation(10)}, f.clock.Monotonic());
  f.calls.KnowMembers();
  CHECK(absl::IsUnavailable((**f.Beat(0, 10)).status()));
  for (const uint32_t worker : {0, 1}) {
    const absl::Status sent_away = (**f.Beat(worker, 30)).status();
    CHECK(absl::IsAborted(sent_away));
  }
}

TEST_CASE("calls that are parked are answered when others take over") {
  Fixture f;
  const auto newcomer = f.Register(0, 10);
  CHECK_FALSE(newcomer->has_value());
  f.calls.Close(absl::UnavailableError("the job goes back"));
  REQUIRE(newcomer->has_value());
  CHECK(absl::IsUnavailable((*newcomer)->status()));
  f.Train();
  const auto beat = f.Beat(0, 10);
  CHECK_FALSE(beat->has_value());
  f.calls.Close(absl::UnavailableError("the job goes back"));
  REQUIRE(beat->has_value());
  CHECK(absl::IsUnavailable((*beat)->status()));
}

TEST_CASE(
    "a member of the chief before keeps its lease by heartbeats while the job has not begun") {
  Fixture f;
  f.membership.Adopt({WorkerIndex(0), Incarnation(10)}, f.clock.Monotonic());
  f.membership.Adopt({WorkerIndex(1), Incarnation(20)}, f.clock.Monotonic());
  for (int i = 0; i < 12; ++i) {
    const auto reply = f.Beat(0, 10);
    REQUIRE(reply->has_value());
    CHECK(absl::IsUnavailable((*reply)->status()));
    // A process that was replaced is told nothing else, and keeps nobody alive.
    CHECK(absl::IsUnavailable((**f.Beat(1, 19)).status()));
    f.Pass(absl::Seconds(1));
  }
  CHECK(f.membership.Live() == std::vector<LiveMember>{{WorkerIndex(0), Incarnation(10)}});
  f.Begin();
  CHECK_FALSE(f.Beat(0, 10)->has_value());
}

TEST_CASE("an evaluation reaches parked workers at once, and its results are acknowledged") {
  Fixture f;
  f.Train();
  const auto a = f.Beat(0, 10);
  const auto b = f.Beat(1, 20);
  REQUIRE(f.evaluations.Begin(GlobalStep(50), false));
  f.calls.AssignLeases();
  REQUIRE(a->has_value());
  REQUIRE((**a)->leases_size() == 1);
  const EvaluationLease lease = (**a)->leases(0);
  CHECK(lease.version() == 50);
  CHECK(lease.end() - lease.begin() == 4);
  CHECK((**b)->leases(0).begin() != lease.begin());
  // Without news the next call is parked.
  const auto parked = f.Beat(0, 10);
  CHECK_FALSE(parked->has_value());
  const auto reported = f.Beat(0, 10, {Result(lease.id(), 4, 3)});
  REQUIRE(reported->has_value());
  CHECK(f.results == 1);
  REQUIRE((**reported)->leases_size() == 1);
  CHECK((**reported)->leases(0).id() != lease.id());
  // Not by the worker that has another lease.
  f.Beat(1, 20, {Result((**reported)->leases(0).id(), 2, 0)});
  CHECK(f.evaluations.running()->ranges_done() == 1);
  // Told twice, counted once, acknowledged again.
  const auto again = f.Beat(0, 10, {Result(lease.id(), 4, 3)});
  REQUIRE(again->has_value());
  CHECK(f.evaluations.running()->ranges_done() == 1);
}

TEST_CASE("a lease moves when its worker is lost") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  REQUIRE(f.evaluations.Begin(GlobalStep(50), false));
  f.calls.AssignLeases();
  CHECK(f.evaluations.LeaseOf(WorkerIndex(0)).has_value());
  CHECK_FALSE(f.evaluations.LeaseOf(WorkerIndex(1)).has_value());
  for (int i = 0; i < 6; ++i) {
    f.Pass(absl::Seconds(1));
    f.Beat(1, 20);
  }
  CHECK(f.membership.members()[0].state == MemberState::kLost);
  CHECK_FALSE(f.evaluations.LeaseOf(WorkerIndex(0)).has_value());
  CHECK(f.changes == 3);
}

TEST_CASE("a result that does not fit its lease is refused") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  REQUIRE(f.evaluations.Begin(GlobalStep(50), false));
  f.calls.AssignLeases();
  const auto reply = f.Beat(0, 10, {Result(1, 400, 3)});
  CHECK((*reply)->status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a worker that gives up ends the job with its message and exit code") {
  Fixture f;
  f.Train();
  ReportErrorRequest request;
  request.set_job_id(9);
  request.set_worker(1);
  request.set_incarnation(20);
  request.set_message("train.csv: line 7: not a number");
  request.set_exit_code(65);
  auto [got, answer] = Arm<ReportErrorReply>();
  f.calls.ReportError(request, std::move(answer));
  CHECK(got->has_value());
  REQUIRE(f.failure.has_value());
  CHECK(ExitCodeFor(*f.failure) == ExitCode::kCorruptInput);
  CHECK(f.failure->message() == "worker 1 (127.0.0.1:3): train.csv: line 7: not a number");
}

TEST_CASE("an error report of a process that was replaced, or of another job, is nobody's") {
  Fixture f;
  f.Train();
  for (const auto& [job, worker, incarnation] :
       std::vector<std::tuple<uint64_t, uint32_t, uint64_t>>{{8, 1, 20}, {9, 1, 21}, {9, 5, 20}}) {
    ReportErrorRequest request;
    request.set_job_id(job);
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    auto [got, answer] = Arm<ReportErrorReply>();
    f.calls.ReportError(request, std::move(answer));
  }
  CHECK_FALSE(f.failure.has_value());
}

TEST_CASE("an error report that comes before the job has begun is to be repeated") {
  Fixture f;
  ReportErrorRequest request;
  request.set_job_id(9);
  request.set_worker(1);
  request.set_incarnation(20);
  auto [got, answer] = Arm<ReportErrorReply>();
  f.calls.ReportError(request, std::move(answer));
  REQUIRE(got->has_value());
  CHECK(absl::IsUnavailable((*got)->status()));
}

TEST_CASE("an answer that nobody gives says that the chief is stopping") {
  auto [got, answer] = Arm<HeartbeatReply>();
  { const Answer<HeartbeatReply> dropped = std::move(answer); }
  REQUIRE(got->has_value());
  CHECK(IsChiefStopping((*got)->status()));
}

}  // namespace
}  // namespace lockstep::chief
