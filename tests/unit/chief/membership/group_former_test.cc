#include "chief/membership/group_former.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

constexpr GlobalStep kStart(30);
constexpr Term kTerm(4);
constexpr Epoch kEpoch(2);

LiveMember Member(uint32_t worker, uint64_t incarnation) {
  return {WorkerIndex(worker), Incarnation(incarnation)};
}

const std::vector<LiveMember> kBoth = {Member(0, 10), Member(1, 11)};

// As of a job that began at kStart.
absl::StatusOr<bool> UpdateAt(GroupFormer* group, std::vector<LiveMember> live, int64_t open) {
  return group->Update(live, {GlobalStep(open), kStart});
}

bool IsNew(GroupFormer* group, std::vector<LiveMember> live, int64_t open) {
  const absl::StatusOr<bool> is_new = UpdateAt(group, std::move(live), open);
  REQUIRE(is_new.ok());
  return *is_new;
}

TEST_CASE("a group is formed when enough members are there, and again when one is another") {
  GroupFormer group(kTerm, kEpoch, 2, {});
  CHECK_FALSE(IsNew(&group, {}, 30));
  CHECK_FALSE(IsNew(&group, {Member(1, 11)}, 30));
  CHECK(group.id().view == 0);
  CHECK(IsNew(&group, kBoth, 30));
  CHECK(group.id().view == 1);
  CHECK(group.step() == kStart);
  CHECK_FALSE(group.members()[0].has_variables);  // the ps have them
  CHECK_FALSE(IsNew(&group, kBoth, 35));
  // A lost member changes nothing until its successor is there.
  CHECK_FALSE(IsNew(&group, {Member(1, 11)}, 36));
  CHECK(group.members().size() == 2);
  CHECK(IsNew(&group, {Member(0, 20), Member(1, 11)}, 36));
  CHECK(group.id().view == 2);
  CHECK(group.step() == GlobalStep(36));
  CHECK(group.members()[0].live == Member(0, 20));
  CHECK_FALSE(group.members()[0].has_variables);
  CHECK(group.members()[1].has_variables);
}

TEST_CASE("until the first step is over, whoever goes can be replaced") {
  GroupFormer group(kTerm, kEpoch, 2, {});
  REQUIRE(IsNew(&group, kBoth, 30));
  CHECK_FALSE(IsNew(&group, {}, 30));
  CHECK(IsNew(&group, {Member(0, 20), Member(1, 21)}, 30));
  CHECK_FALSE(group.members()[0].has_variables);
}

TEST_CASE("a successor has the variables once a step has closed with it") {
  GroupFormer group(kTerm, kEpoch, 2, {});
  REQUIRE(IsNew(&group, kBoth, 30));
  REQUIRE(IsNew(&group, {Member(0, 10), Member(1, 21)}, 33));

  SECTION("not before") {
    const absl::Status lost = UpdateAt(&group, {Member(1, 21)}, 33).status();
    CHECK(ExitCodeFor(lost) == ExitCode::kPeersLost);
    CHECK_THAT(std::string(lost.message()), Contains("step 33") && Contains("--resume"));
  }
  SECTION("afterwards") {
    CHECK_FALSE(IsNew(&group, {Member(1, 21)}, 34));
    CHECK(IsNew(&group, {Member(0, 30), Member(1, 21)}, 34));
    CHECK_FALSE(group.members()[0].has_variables);
    CHECK(group.members()[1].has_variables);
  }
}

TEST_CASE("when all have gone after the first step, their variables have gone, too") {
  GroupFormer group(kTerm, kEpoch, 2, {});
  REQUIRE(IsNew(&group, kBoth, 30));
  CHECK(ExitCodeFor(UpdateAt(&group, {}, 31).status()) == ExitCode::kPeersLost);
  const auto others = UpdateAt(&group, {Member(0, 20), Member(1, 21)}, 31);
  CHECK(ExitCodeFor(others.status()) == ExitCode::kPeersLost);
}

TEST_CASE("after the last step those that live and have its version are the group") {
  GroupFormer group(kTerm, kEpoch, 2, {});
  REQUIRE(IsNew(&group, kBoth, 30));
  const GlobalStep last(33);
  CHECK_FALSE(group.KeepHolders(kBoth, last));
  // Fewer than a step needs; the successor has nothing to store.
  CHECK(group.KeepHolders({Member(0, 20), Member(1, 11)}, last));
  CHECK(group.id().view == 2);
  CHECK(group.step() == last);
  REQUIRE(group.members().size() == 1);
  CHECK(group.members()[0].live == Member(1, 11));
  CHECK(group.members()[0].has_variables);
  CHECK_FALSE(group.KeepHolders({Member(0, 20), Member(1, 11)}, last));
  CHECK(group.HasHolder({Member(0, 20), Member(1, 11)}, last));
  CHECK_FALSE(group.KeepHolders({Member(0, 20)}, last));
  CHECK_FALSE(group.HasHolder({Member(0, 20)}, last));
}

TEST_CASE("a chief that takes over after the last step names those that live in its first view") {
  GroupFormer group(kTerm, kEpoch, 2, kBoth);
  CHECK(group.KeepHolders({Member(1, 11)}, GlobalStep(33)));
  CHECK(group.id().view == 1);
  CHECK(group.members().size() == 1);
}

TEST_CASE("a failure of the view forms it anew at the step that failed") {
  GroupFormer group(kTerm, kEpoch, 2, {});
  REQUIRE(IsNew(&group, kBoth, 30));
  // Of another view, another chief, another epoch; of none.
  for (const GroupViewId& other :
       {GroupViewId{4, 2, 7}, GroupViewId{3, 2, 1}, GroupViewId{4, 1, 1}, GroupViewId{4, 2, 0}}) {
    group.NoteFailure(other, GlobalStep(40));
    CHECK_FALSE(IsNew(&group, kBoth, 30));
  }
  group.NoteFailure({4, 2, 1}, GlobalStep(40));
  CHECK(IsNew(&group, kBoth, 30));  // the shard's answer may be older than the failure
  CHECK(group.id().view == 2);
  CHECK(group.step() == GlobalStep(40));
  CHECK(group.members()[0].has_variables);
  CHECK_FALSE(IsNew(&group, kBoth, 40));
}

TEST_CASE("members that an earlier chief had have the variables") {
  GroupFormer group(kTerm, kEpoch, 2, kBoth);
  REQUIRE(group.Update(kBoth, {GlobalStep(50), GlobalStep(0)}).value());
  CHECK(group.id().view == 1);
  CHECK(group.members()[0].has_variables);
  CHECK(group.members()[1].has_variables);
}

}  // namespace
}  // namespace lockstep::chief
