#include "chief/membership/membership.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "chief/membership/describe.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kLease = absl::Seconds(5);
const WorkerIndex kW0(0), kW1(1);
const Incarnation kFirst(11), kSecond(22), kThird(33);

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

struct Fixture {
  Membership membership{{"a:1", "b:2"}, kLease, At(0)};

  absl::StatusOr<Admission> Register(WorkerIndex worker, Incarnation incarnation, double now) {
    return membership.Register(worker, incarnation, "host", 42, At(now));
  }
  absl::Status Beat(WorkerIndex worker, Incarnation incarnation, double now) {
    return membership.Heartbeat(worker, incarnation, {}, At(now));
  }
  // It shows that the process lived just before.
  absl::Status BeatAlive(WorkerIndex worker, Incarnation incarnation, double now) {
    membership.NoteAlive({worker, incarnation}, At(now - 0.1));
    return Beat(worker, incarnation, now);
  }
  // Time passes with Expire called often, as it is.
  std::vector<WorkerIndex> Pass(double from, double to) {
    std::vector<WorkerIndex> lost;
    for (double now = from; now <= to; now += 0.5) {
      for (WorkerIndex worker : membership.Expire(At(now))) lost.push_back(worker);
    }
    return lost;
  }
};

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

TEST_CASE("a pause of the chief itself costs nobody the lease") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 0).ok());
  CHECK(f.Pass(0.5, 1).empty());
  CHECK(f.membership.Expire(At(60)).empty());
  CHECK(f.membership.Expire(At(60.5)).empty());
  REQUIRE(f.Beat(kW0, kFirst, 61).ok());
  CHECK(f.Pass(61, 66).empty());
  CHECK(f.Pass(66.5, 67).size() == 1);
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
        "worker 0 (a:1) was lost 12 s ago, last heard of 18 s ago; worker 1 (b:2) has not "
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
  const Membership membership(std::vector<std::string>(20, "a:1"), absl::Seconds(5), At(0));
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

TEST_CASE("members of the chief before are live and have a lease, unless somebody came meanwhile") {
  Fixture f;
  REQUIRE(f.Register(kW0, kSecond, 0).ok());
  f.membership.Adopt({kW0, kFirst}, At(1));
  f.membership.Adopt({kW1, kFirst}, At(1));
  f.membership.Adopt({WorkerIndex(9), kFirst}, At(1));
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kSecond}, {kW1, kFirst}});
  REQUIRE(f.Beat(kW1, kFirst, 2).ok());
  CHECK(f.Pass(2, 8).size() == 2);
}

TEST_CASE("a member of the chief before has time to find the next one, until it is heard of") {
  Fixture f;
  f.membership.Adopt({kW0, kFirst}, At(1), absl::Seconds(8));
  f.membership.Adopt({kW1, kFirst}, At(1), absl::Seconds(8));
  CHECK(f.Pass(1, 8).empty());
  // One that was started again waits for the lease, and is not refused.
  const auto successor = f.Register(kW0, kSecond, 8);
  REQUIRE(successor.ok());
  CHECK(*successor == Admission::kContended);
  REQUIRE(f.Beat(kW1, kFirst, 8).ok());
  CHECK(f.Pass(8, 10) == std::vector<WorkerIndex>{kW0});
  CHECK(f.Pass(10, 14) == std::vector<WorkerIndex>{kW1});
}

TEST_CASE(
    "an inherited member has an ordinary lease from when another process asks for its index") {
  Fixture f;
  f.membership.Adopt({kW0, kFirst}, At(1), absl::Seconds(10));
  f.membership.Adopt({kW1, kFirst}, At(1), absl::Seconds(10));
  CHECK(f.Pass(1, 2).empty());
  CHECK(f.Register(kW0, kSecond, 2).value() == Admission::kContended);
  CHECK(f.Register(kW0, kSecond, 4).value() == Admission::kContended);
  CHECK(f.Pass(2.5, 7).empty());
  CHECK(f.Pass(7.5, 7.5) == std::vector<WorkerIndex>{kW0});
  CHECK(f.Register(kW0, kSecond, 7.5).value() == Admission::kAdmitted);
  // Nobody asks for the other one's.
  CHECK(f.Pass(8, 11).empty());
  CHECK(f.Pass(11.5, 11.5) == std::vector<WorkerIndex>{kW1});
}

TEST_CASE("an inherited member that is heard of keeps its index, whoever asked for it") {
  Fixture f;
  f.membership.Adopt({kW0, kFirst}, At(1), absl::Seconds(10));
  CHECK(f.Register(kW0, kSecond, 2).value() == Admission::kContended);
  CHECK(f.Pass(1, 3).empty());
  REQUIRE(f.BeatAlive(kW0, kFirst, 3).ok());
  const absl::Status refused = f.Register(kW0, kSecond, 4).status();
  CHECK(refused.code() == absl::StatusCode::kAlreadyExists);
  CHECK(refused.message() ==
        "worker 0 is running already: inherited from the previous chief, host and pid unknown. "
        "Remedy: give this process another --task_index, or end that one");
}

TEST_CASE("the lease of an inherited member counts from a call for its index at the standby") {
  Fixture f;
  StandbyCallers callers;
  callers.Note(kW0, kSecond, At(1));
  f.Pass(0.5, 3);
  f.membership.Adopt({kW0, kFirst}, At(3), absl::Seconds(10), &callers);
  CHECK(f.Register(kW0, kSecond, 3.5).value() == Admission::kContended);
  CHECK(f.Pass(3, 6).empty());
  CHECK(f.Pass(6.5, 6.5) == std::vector<WorkerIndex>{kW0});
  CHECK(f.membership.members()[0].last_heard == At(1));
}

TEST_CASE("a call at the standby alone ends no lease: that process has not been checked") {
  Fixture f;
  StandbyCallers callers;
  callers.Note(kW0, kSecond, At(1));
  const double grace = GENERATE(0, 8);
  f.membership.Adopt({kW0, kFirst}, At(3), absl::Seconds(grace), &callers);
  const double end = 3 + std::max(grace, 5.0);
  CHECK(f.Pass(3, end).empty());
  CHECK(f.Pass(end + 0.5, end + 0.5).size() == 1);
}

TEST_CASE("an inherited member that called the standby itself has lived until then") {
  Fixture f;
  StandbyCallers callers;
  callers.Note(kW0, kSecond, At(1));
  callers.Note(kW1, kSecond, At(1));
  callers.Note(kW0, kFirst, At(1.2));
  callers.Note(kW1, kFirst, At(2));
  f.Pass(0.5, 3);
  f.membership.Adopt({kW0, kFirst}, At(3), absl::Seconds(10), &callers);
  f.membership.Adopt({kW1, kFirst}, At(3), absl::Seconds(10), &callers);
  // That call may have come late, from a process that had died.
  CHECK(f.Register(kW0, kSecond, 3.5).value() == Admission::kContended);
  CHECK(f.Register(kW1, kSecond, 3.5).value() == Admission::kContended);
  CHECK(f.Pass(3, 6).empty());
  CHECK(f.Pass(6.5, 6.5) == std::vector<WorkerIndex>{kW0});
  CHECK(f.Pass(7, 7.5) == std::vector<WorkerIndex>{kW1});
}

TEST_CASE("a member is inherited though its registration comes first") {
  Fixture f;
  REQUIRE(f.Register(kW0, kFirst, 1).ok());
  REQUIRE(f.Register(kW1, kSecond, 1).ok());
  CHECK_FALSE(f.membership.members()[0].is_inherited);
  f.membership.Adopt({kW0, kFirst}, At(1));
  f.membership.Adopt({kW1, kFirst}, At(1));
  CHECK(f.membership.members()[0].is_inherited);
  CHECK_FALSE(f.membership.members()[1].is_inherited);
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
}  // namespace lockstep::chief
