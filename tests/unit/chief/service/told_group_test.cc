// Which workers of a replicated job are told its group.
#include <catch2/catch.hpp>
#include <utility>

#include "chief/service/worker_calls.h"
#include "proto/group.pb.h"
#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;

GroupView GroupOf(uint64_t view, const std::vector<std::pair<uint32_t, uint64_t>>& members) {
  GroupView group;
  group.set_view(view);
  for (const auto& [worker, incarnation] : members) {
    GroupMember* member = group.add_members();
    member->set_worker(worker);
    member->set_incarnation(incarnation);
  }
  return group;
}

TEST_CASE("a new group is told to its members at once") {
  Fixture f;
  f.Train();
  const auto beat = f.Beat(0, 10);
  f.calls.SetGroup(GroupOf(1, {{0, 10}, {1, 20}}));
  REQUIRE(beat->has_value());
  CHECK((**beat)->group().view() == 1);
  CHECK((**beat)->group().members_size() == 2);
  CHECK_FALSE(f.Beat(0, 10)->has_value());  // nothing new
}

TEST_CASE("a worker that is no member of the group yet is told the one that has it") {
  Fixture f;
  f.Train();
  f.calls.SetGroup(GroupOf(1, {{0, 10}, {1, 20}}));
  f.Leave(1, 20);
  CHECK((**f.Register(1, 21))->ready());
  // It is in no view, and has nothing to be told.
  auto beat = f.Beat(1, 21);
  CHECK_FALSE(beat->has_value());
  f.Pass(absl::Seconds(1));
  REQUIRE(beat->has_value());
  CHECK_FALSE((**beat)->has_group());
  beat = f.Beat(1, 21);
  CHECK_FALSE(beat->has_value());

  f.calls.SetGroup(GroupOf(2, {{0, 10}, {1, 21}}));
  REQUIRE(beat->has_value());
  CHECK((**beat)->group().view() == 2);
}

}  // namespace
}  // namespace lockstep::chief
