// Members of the chief before.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/chief/membership/membership_fixture.h"

namespace lockstep::chief::membership_test {
namespace {

TEST_CASE("members of the chief before are live and have a lease") {
  Fixture f;
  f.membership.Adopt({kW0, kFirst}, At(1));
  f.membership.Adopt({kW1, kFirst}, At(1));
  f.membership.Adopt({WorkerIndex(9), kFirst}, At(1));
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kFirst}, {kW1, kFirst}});
  REQUIRE(f.Beat(kW1, kFirst, 2).ok());
  CHECK(f.Pass(1.5, 8).size() == 2);
}

// That registration may have come late, from a process before the member.
TEST_CASE("a member of the chief before is one, though another process has registered meanwhile") {
  Fixture f;
  REQUIRE(f.Register(kW0, kSecond, 0).ok());
  CHECK(f.Pass(0.5, 1).empty());
  const uint64_t changes = f.membership.changes();
  f.membership.Adopt({kW0, kFirst}, At(1));
  CHECK(f.membership.changes() == changes + 1);
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kFirst}});
  CHECK(DescribeProcess(f.membership.members()[0]) ==
        "inherited from the previous chief, host and pid unknown");
  REQUIRE(f.BeatAlive(kW0, kFirst, 2).ok());
  SECTION("the member lives") {
    CHECK(f.Register(kW0, kSecond, 2).value() == Admission::kContended);
    REQUIRE(f.BeatAlive(kW0, kFirst, 3).ok());
    CHECK(absl::IsAlreadyExists(f.Register(kW0, kSecond, 4).status()));
  }
  SECTION("the member has died: the other one is its successor") {
    CHECK(f.Register(kW0, kSecond, 2).value() == Admission::kContended);
    CHECK(f.Pass(2, 7).empty());
    CHECK(f.Pass(7.5, 7.5) == std::vector<WorkerIndex>{kW0});
    CHECK(f.Register(kW0, kSecond, 7.5).value() == Admission::kAdmitted);
  }
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

TEST_CASE("an inherited member that calls keeps its index when another process asks for it") {
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
  callers.RecordCall(kW0, kSecond, At(1));
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
  callers.RecordCall(kW0, kSecond, At(1));
  const double grace = GENERATE(0, 8);
  f.membership.Adopt({kW0, kFirst}, At(3), absl::Seconds(grace), &callers);
  const double end = 3 + std::max(grace, 5.0);
  CHECK(f.Pass(3, end).empty());
  CHECK(f.Pass(end + 0.5, end + 0.5).size() == 1);
}

TEST_CASE("an inherited member that called the standby itself has lived until then") {
  Fixture f;
  StandbyCallers callers;
  callers.RecordCall(kW0, kSecond, At(1));
  callers.RecordCall(kW1, kSecond, At(1));
  callers.RecordCall(kW0, kFirst, At(1.2));
  callers.RecordCall(kW1, kFirst, At(2));
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
  CHECK_FALSE(f.membership.members()[0].is_inherited);
  f.membership.Adopt({kW0, kFirst}, At(1));
  f.membership.Adopt({kW1, kFirst}, At(1));
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kFirst}, {kW1, kFirst}});
  CHECK(f.membership.members()[0].is_inherited);
  CHECK(f.membership.members()[0].host == "host");
}

}  // namespace
}  // namespace lockstep::chief::membership_test
