#include "chief/membership/membership.h"

#include <catch2/catch.hpp>

#include "chief/membership/describe.h"
#include "tests/unit/chief/membership/membership_fixture.h"

namespace lockstep::chief::membership_test {
namespace {

TEST_CASE("a worker is absent, registers and is live under its incarnation") {
  Fixture f;
  CHECK(f.membership.Live().empty());
  CHECK(f.membership.changes() == 0);
  CHECK(f.Register(kW1, kFirst, 1).value() == Admission::kAdmitted);
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW1, kFirst}});
  CHECK(f.membership.changes() == 1);
  CHECK(f.Register(kW1, kFirst, 2).value() == Admission::kAdmitted);
  CHECK(f.membership.changes() == 1);
}

TEST_CASE("an index outside the cluster is refused") {
  Fixture f;
  CHECK(f.Register(WorkerIndex(2), kFirst, 0).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(f.Beat(WorkerIndex(2), kFirst, 0).code() == absl::StatusCode::kAborted);
}

TEST_CASE("a worker is lost when it is silent for longer than the lease, not before") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  CHECK(f.Pass(0.5, 5).empty());
  CHECK(f.Pass(5.5, 5.5) == std::vector<WorkerIndex>{kW0});
  CHECK(f.membership.members()[0].state == MemberState::kLost);
  CHECK(f.membership.changes() == 2);
  CHECK(f.Pass(6, 20).empty());
}

TEST_CASE("heartbeats keep the lease and bring the report") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  for (double now = 1; now < 30; ++now) {
    REQUIRE(f.membership
                .Heartbeat(kW0, kFirst, {GlobalStep(static_cast<int64_t>(now)), "a token", 7, 5, 2},
                           At(now))
                .ok());
    CHECK(f.membership.Expire(At(now)).empty());
  }
  const MemberRecord& member = f.membership.members()[0];
  CHECK(member.report.local_step == GlobalStep(29));
  CHECK(member.report.stale == 2);
  CHECK(member.last_heard == At(29));
}

TEST_CASE("a lost worker that comes back is fenced, and its successor is admitted") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  REQUIRE(f.Pass(0.5, 6).size() == 1);
  CHECK(f.Beat(kW0, kFirst, 6).code() == absl::StatusCode::kAborted);
  CHECK(f.Register(kW0, kSecond, 7).value() == Admission::kAdmitted);
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kSecond}});
  CHECK(f.membership.changes() == 3);
  CHECK(f.Beat(kW0, kFirst, 8).code() == absl::StatusCode::kAborted);
  CHECK(f.Beat(kW0, kSecond, 8).ok());
}

TEST_CASE("a successor has none of its predecessor's report") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  REQUIRE(f.membership.Heartbeat(kW0, kFirst, {GlobalStep(9), "x", 7, 5, 2}, At(1)).ok());
  REQUIRE(f.Pass(1.5, 7).size() == 1);
  REQUIRE(f.Register(kW0, kSecond, 8).ok());
  CHECK(f.membership.members()[0].report.examples == 0);
}

TEST_CASE("a second process of a worker that is alive is refused, naming host and pid") {
  Fixture f;
  REQUIRE(f.membership.Register(kW0, kFirst, "node7", 4711, At(0)).ok());
  CHECK(f.Register(kW0, kSecond, 1).value() == Admission::kContended);
  CHECK(f.Register(kW0, kSecond, 1.5).value() == Admission::kContended);
  REQUIRE(f.BeatAlive(kW0, kFirst, 2).ok());
  const absl::Status refused = f.Register(kW0, kSecond, 3).status();
  CHECK(refused.code() == absl::StatusCode::kAlreadyExists);
  CHECK(std::string(refused.message()).find("node7") != std::string::npos);
  CHECK(std::string(refused.message()).find("4711") != std::string::npos);
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kFirst}});
}

TEST_CASE("of a newcomer among more than 16 it is forgotten when it asked first") {
  const auto others = GENERATE(15, 16);
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  CHECK(f.Register(kW0, kSecond, 1).value() == Admission::kContended);
  for (int i = 0; i < others; ++i) {
    CHECK(f.Register(kW0, Incarnation(100 + i), 1).value() == Admission::kContended);
  }
  // The worker lived after all of them asked.
  REQUIRE(f.BeatAlive(kW0, kFirst, 2).ok());
  if (others == 15) {
    CHECK(absl::IsAlreadyExists(f.Register(kW0, kSecond, 3).status()));
    return;
  }
  CHECK(f.Register(kW0, kSecond, 3).value() == Admission::kContended);
  REQUIRE(f.BeatAlive(kW0, kFirst, 4).ok());
  CHECK(absl::IsAlreadyExists(f.Register(kW0, kSecond, 5).status()));
}

TEST_CASE("a call of a dead process that comes late does not turn its successor away") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  CHECK(f.Register(kW0, kSecond, 1).value() == Admission::kContended);
  REQUIRE(f.Beat(kW0, kFirst, 1.4).ok());
  CHECK(f.Register(kW0, kSecond, 3).value() == Admission::kContended);
  // However late it comes.
  REQUIRE(f.Beat(kW0, kFirst, 3.1).ok());
  CHECK(f.Register(kW0, kSecond, 5).value() == Admission::kContended);
  REQUIRE(f.Register(kW0, kFirst, 5.1).ok());
  CHECK(f.Register(kW0, kSecond, 5.2).value() == Admission::kContended);
  // It lived before the newcomer asked.
  f.membership.NoteAlive({kW0, kFirst}, At(0.9));
  CHECK(f.Register(kW0, kSecond, 6).value() == Admission::kContended);
  f.membership.NoteAlive({kW0, kThird}, At(6));
  CHECK(f.Register(kW0, kSecond, 6).value() == Admission::kContended);
  f.membership.NoteAlive({kW0, kFirst}, At(1.1));
  CHECK(f.Register(kW0, kSecond, 7).status().code() == absl::StatusCode::kAlreadyExists);
}

TEST_CASE("the successor of a process that died a moment ago waits for the lease to end") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  CHECK(f.Register(kW0, kSecond, 1).value() == Admission::kContended);
  CHECK(f.Register(kW0, kThird, 2).value() == Admission::kContended);
  CHECK(f.Register(kW0, kSecond, 4).value() == Admission::kContended);
  CHECK(f.Pass(0.5, 5).empty());
  CHECK(f.Pass(5.5, 6).size() == 1);
  CHECK(f.Register(kW0, kSecond, 6).value() == Admission::kAdmitted);
  CHECK(f.Register(kW0, kThird, 7).value() == Admission::kContended);
}

TEST_CASE("asking to register again counts as a heartbeat, also against a newcomer") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  CHECK(f.Register(kW0, kSecond, 1).value() == Admission::kContended);
  REQUIRE(f.Register(kW0, kFirst, 2).ok());
  CHECK(f.Pass(3, 6.5).empty());
  CHECK(f.Register(kW0, kSecond, 6.5).value() == Admission::kContended);
}

TEST_CASE("the words say who is missing since when and what the others wait for") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  REQUIRE(f.membership.Heartbeat(kW0, kFirst, {GlobalStep(3), "a token", 0, 0, 0}, At(1)).ok());
  CHECK(DescribeMissing(f.membership, At(2)) == "worker 1 (b:2) has not registered");
  CHECK(DescribeMember(f.membership, kW0, At(1.5)) ==
        "worker 0 (a:1) waits for a token, last heard of 0.5 s ago");
  REQUIRE(f.membership.Heartbeat(kW0, kFirst, {GlobalStep(3), "", 0, 0, 0}, At(2)).ok());
  CHECK(DescribeMember(f.membership, kW0, At(2)) ==
        "worker 0 (a:1) computes step 3, last heard of 0.0 s ago");
  REQUIRE(f.Pass(2.5, 8).size() == 1);
  CHECK(DescribeMissing(f.membership, At(20)) ==
        "worker 0 (a:1) was lost 13 s ago, last heard of 18 s ago; worker 1 (b:2) has not "
        "registered");
  CHECK(DescribeAll(f.membership, At(20)) == DescribeMissing(f.membership, At(20)));
}

TEST_CASE("who only waits is not among the busy ones") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  REQUIRE(f.Register(kW1, kFirst, 0).ok());
  REQUIRE(f.membership.Heartbeat(kW0, kFirst, {GlobalStep(3), "a token", 0, 0, 0}, At(1)).ok());
  REQUIRE(f.membership.Heartbeat(kW1, kFirst, {GlobalStep(3), "", 0, 0, 0}, At(1)).ok());
  const std::string busy = "worker 1 (b:2) computes step 3, last heard of 0.0 s ago";
  CHECK(DescribeBusy(f.membership, At(1)) == busy);
  CHECK(DescribeAll(f.membership, At(1)) ==
        busy + "; worker 0 (a:1) waits for a token, last heard of 0.0 s ago");
  REQUIRE(f.membership.Heartbeat(kW1, kFirst, {GlobalStep(3), "a token", 0, 0, 0}, At(1)).ok());
  CHECK(DescribeBusy(f.membership, At(1)).empty());
}

TEST_CASE("of many who are missing the first are named, and the others counted") {
  const Membership membership(std::vector<std::string>(20, "a:1"), absl::Seconds(5));
  const std::string missing = DescribeMissing(membership, At(1));
  CHECK(missing.ends_with("worker 7 (a:1) has not registered; 12 more"));
}

TEST_CASE("whose data has ended lives, is no longer able, and takes a stamp away for good") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  REQUIRE(f.Register(kW1, kFirst, 0).ok());
  const auto count = [&](int64_t step) {
    return f.membership.CountFor(GlobalStep(step), f.membership.Live());
  };
  f.membership.NoteStart({kW0, kFirst}, GlobalStep(0));
  f.membership.NoteStart({kW0, kFirst}, GlobalStep(0));  // it was told again
  f.membership.NoteStart({kW1, kSecond}, GlobalStep(0));
  CHECK(count(0).able == 2);
  CHECK(count(0).replicas == 2);
  CHECK(count(0).starts == 2);
  CHECK(count(3).starts == 0);
  WorkerReport report{.local_step = GlobalStep(4), .out_of_data = true};
  REQUIRE(f.membership.Heartbeat(kW1, kFirst, report, At(1)).ok());
  report.out_of_data = false;  // an older call that comes late
  REQUIRE(f.membership.Heartbeat(kW1, kFirst, report, At(1)).ok());
  CHECK(count(3).able == 1);
  CHECK(count(3).out_of_data == 1);
  CHECK(count(3).lost_tokens == 0);
  CHECK(count(4).lost_tokens == 1);
  CHECK(DescribeMissing(f.membership, At(1)) == "worker 1 (b:2) is out of data since step 4");
  // Its successor has data, and brings a stamp of its own; the one that is gone stays away.
  REQUIRE(f.Pass(1, 6.5).size() == 2);
  REQUIRE(f.Register(kW1, kSecond, 7).ok());
  f.membership.NoteStart({kW1, kSecond}, GlobalStep(4));
  CHECK(count(4).able == 1);
  CHECK(count(4).starts == 1);
  CHECK(count(4).lost_tokens == 1);
}

TEST_CASE("of starts at earlier steps nothing is remembered, though nobody counts them") {
  Fixture f;
  f.membership.NoteStart({kW0, kFirst}, GlobalStep(3));
  f.membership.NoteStart({kW1, kFirst}, GlobalStep(4));
  CHECK(f.membership.CountFor(GlobalStep(3), {}).starts == 0);
  CHECK(f.membership.CountFor(GlobalStep(4), {}).starts == 1);
}

TEST_CASE("who is lost counts among members that still have it, without its successor's data") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  REQUIRE(f.Register(kW1, kFirst, 0).ok());
  const std::vector<LiveMember> known = f.membership.Live();
  const auto able = [&](const std::vector<LiveMember>& members) {
    return f.membership.CountFor(GlobalStep(0), members).able;
  };
  REQUIRE(f.Pass(0, 6).size() == 2);
  CHECK(able(known) == 2);
  CHECK(able(f.membership.Live()) == 0);
  REQUIRE(f.Register(kW1, kSecond, 7).ok());
  const WorkerReport report{.out_of_data = true};
  REQUIRE(f.membership.Heartbeat(kW1, kSecond, report, At(7)).ok());
  CHECK(able(known) == 2);
  CHECK(able(f.membership.Live()) == 0);
}

TEST_CASE("a worker that leaves is lost at once, and its index is free") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  const uint64_t changes = f.membership.changes();
  CHECK(absl::IsAborted(f.membership.Leave(kW0, kSecond, At(1))));
  CHECK(absl::IsAborted(f.membership.Leave(WorkerIndex(2), kFirst, At(1))));
  REQUIRE(f.membership.Leave(kW0, kFirst, At(1)).ok());
  CHECK(f.membership.members()[0].state == MemberState::kLost);
  CHECK(f.membership.members()[0].lost_since == At(1));
  CHECK(f.membership.changes() == changes + 1);
  CHECK(f.membership.Live().empty());
  CHECK(f.membership.Expire(At(1)).empty());
  CHECK(f.Register(kW0, kSecond, 1).value() == Admission::kAdmitted);
}

}  // namespace
}  // namespace lockstep::chief::membership_test
