// What workers are told of the end of a job, and who is waited for.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;

TEST_CASE("the end reaches parked workers at once and the others with their next call") {
  Fixture f;
  f.Train();
  const auto parked = f.Beat(0, 10);
  f.calls.End(absl::OkStatus());
  REQUIRE(parked->has_value());
  CHECK((**parked)->finish());
  CHECK_FALSE(f.calls.EverybodyIsTold());
  const auto late = f.Beat(1, 20);
  CHECK((**late)->finish());
  CHECK(f.calls.EverybodyIsTold());
  CHECK_FALSE(f.calls.EverybodyKnows());
}

TEST_CASE("everybody knows the end when all have named a reply that told it") {
  Fixture f;
  f.Train();
  const auto first = f.Beat(0, 10);
  const auto second = f.Beat(1, 20);
  f.calls.End(absl::OkStatus());
  f.Receive(10, first);
  CHECK((**f.Beat(0, 10))->finish());
  CHECK(f.ends_known == 1);
  CHECK_FALSE(f.calls.EverybodyKnows());
  // The answer was lost: this call names none that told it.
  const auto again = f.Beat(1, 20);
  CHECK((**again)->finish());
  CHECK(f.ends_known == 1);
  CHECK_FALSE(f.calls.EverybodyKnows());
  f.Receive(20, again);
  f.Beat(1, 20);
  CHECK(f.ends_known == 2);
  CHECK(f.calls.EverybodyKnows());
  f.Beat(1, 20);
  CHECK(f.ends_known == 2);
}

TEST_CASE("a reply before the end, or of another run, is no sign that the end is known") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  const auto before = f.Beat(0, 10);  // answers the call before it
  f.Pass(absl::Seconds(1.1));
  f.Receive(10, before);
  f.calls.End(absl::OkStatus());
  f.Beat(0, 10);
  CHECK(f.ends_known == 0);
  ReplyId high;
  high.set_run(kRun + 1);
  high.set_number(1000);
  f.received[10] = high;
  f.Beat(0, 10);
  CHECK(f.ends_known == 0);
}

TEST_CASE("a worker that was told the end is not missed while the ps are told") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  f.Beat(1, 20);
  f.calls.End(absl::OkStatus());
  f.Beat(1, 20);
  f.Pass(absl::Seconds(6));  // a lease is 5 s
  CHECK(f.warnings.empty());
  CHECK(f.calls.EverybodyKnows());
}

TEST_CASE("a worker that falls silent before it knows the end is missed") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  f.calls.End(absl::OkStatus());
  f.Pass(absl::Seconds(6));
  REQUIRE(f.warnings.size() == 1);
  CHECK(absl::StartsWith(f.warnings[0], "worker 1 (127.0.0.1:3) is lost: silent for 5"));
}

TEST_CASE("a worker that never came is waited for at the end of a job that began without it") {
  Fixture f;
  f.Register(0, 10);
  f.Begin();
  const auto told = f.Beat(0, 10);
  f.calls.End(absl::OkStatus());
  f.Receive(10, told);
  f.Beat(0, 10);
  CHECK_FALSE(f.calls.EverybodyKnows());
  CHECK((**f.Register(1, 20))->done());
  CHECK(f.calls.EverybodyKnows());
}

TEST_CASE("a failure is told with its reason and its exit code") {
  Fixture f;
  f.Train();
  f.calls.End(WithExitCode(absl::UnavailableError("ps 1 is gone"), ExitCode::kPeersLost));
  const auto reply = f.Beat(0, 10);
  CHECK((**reply)->fail() == "ps 1 is gone");
  CHECK((**reply)->fail_exit_code() == 138);
  CHECK_FALSE((**reply)->finish());
}

TEST_CASE("a failure before the job began reaches those who register") {
  Fixture f;
  const auto parked = f.Register(0, 10);
  f.calls.End(absl::UnavailableError("ps 1 is gone"));
  REQUIRE(parked->has_value());
  CHECK((*parked)->status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(f.calls.EverybodyKnows());
  CHECK((*f.Register(1, 20))->status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("nothing is kept of a process that registers after the end with an index of no worker") {
  Fixture f;
  f.Train();
  f.calls.End(absl::OkStatus());
  for (const uint32_t index : {2u, 3u, 1000000u}) CHECK((**f.Register(index, 30))->done());
  WorkerContacts contacts(ToldCluster(f.clusters, ToProto(kCluster)), &f.membership, nullptr);
  for (const uint32_t index : {0u, 1u, 2u, 1000000u}) {
    contacts.RecordEnded({WorkerIndex(index), Incarnation(30)});
    CHECK(contacts.IsToldEnd(WorkerIndex(index)) == (index < 2));
  }
}

}  // namespace
}  // namespace lockstep::chief
