#include "worker/peer/group.h"

#include <catch2/catch.hpp>

#include "worker/peer/member_watch.h"

namespace lockstep::worker {
namespace {

GroupView ViewOfTwo() {
  GroupView view;
  view.set_job(7);
  view.set_term(1);
  view.set_epoch(2);
  view.set_view(3);
  for (uint32_t worker : {4, 2}) {
    GroupMember* const member = view.add_members();
    member->set_worker(worker);
    member->set_incarnation(worker * 10);
    member->set_address(std::string("host:") + std::to_string(worker));
  }
  return view;
}

TEST_CASE("a group keeps the order of its members and knows its own position") {
  const Group group = GroupFromProto(ViewOfTwo(), 2, 20).value();
  CHECK(group.position == 1);
  CHECK(group.view == GroupViewId{1, 2, 3});
  CHECK(NameOfMember(group, 0) == "worker 4 (host:4)");
  const PeerIdentity identity = IdentityOf(group);
  CHECK(identity.job() == 7);
  CHECK(identity.worker() == 2);
  CHECK(identity.incarnation() == 20);
  CHECK(ViewOf(identity) == group.view);
}

TEST_CASE("views are ordered by term, then epoch, then view") {
  CHECK(GroupViewId{1, 9, 9} < GroupViewId{2, 0, 0});
  CHECK(GroupViewId{1, 1, 9} < GroupViewId{1, 2, 0});
  CHECK(GroupViewId{1, 1, 1} < GroupViewId{1, 1, 2});
  CHECK(ToString(GroupViewId{1, 2, 3}) == "term 1, epoch 2, view 3");
}

TEST_CASE("a view that no worker can use is refused, with the reason") {
  GroupView view = ViewOfTwo();
  const auto error = [&](uint64_t incarnation) {
    return std::string(GroupFromProto(view, 2, incarnation).status().message());
  };
  CHECK(error(21) == "worker 2, incarnation 21, is no member of term 1, epoch 2, view 3");
  CHECK(absl::IsAborted(GroupFromProto(view, 2, 21).status()));
  view.mutable_members(0)->set_worker(2);
  CHECK(error(20) == "group of term 1, epoch 2, view 3: worker 2 is a member twice");
  view.mutable_members(0)->clear_address();
  CHECK(error(20) == "group of term 1, epoch 2, view 3: worker 2 has no address");
  view.clear_members();
  CHECK(error(20) == "group of term 1, epoch 2, view 3: expected members, got none");
}

TEST_CASE("the member that has been silent for longest is named") {
  MemberWatch watch({"worker 0 (a:1)", "worker 1 (b:1)", "worker 2 (c:1)"}, absl::Seconds(6));
  watch.Start(absl::Seconds(10));
  watch.OnAnswered(0, absl::Seconds(15));
  watch.OnAnswered(1, absl::Seconds(12));
  watch.OnAnswered(2, absl::Seconds(15));
  CHECK(watch.Check(absl::Seconds(17)).ok());
  CHECK(watch.Check(absl::Seconds(18)) ==
        absl::DeadlineExceededError("collective: worker 1 (b:1) has answered no call for 6s"));
}

TEST_CASE("a member that cannot be reached is unavailable, with the reason") {
  MemberWatch watch({"worker 0 (a:1)"}, absl::Seconds(6));
  watch.Start(absl::ZeroDuration());
  watch.OnError(0, absl::UnavailableError("Connection refused"));
  CHECK(watch.Check(absl::Seconds(7)) ==
        absl::UnavailableError(
            "collective: worker 0 (a:1) has answered no call for 7s: Connection refused"));
  watch.OnAnswered(0, absl::Seconds(7));
  CHECK(watch.Check(absl::Seconds(12)).ok());
  // What was wrong before the answer is not the reason of a later silence.
  CHECK(absl::IsDeadlineExceeded(watch.Check(absl::Seconds(13))));
  watch.Start(absl::Seconds(20));
  CHECK(watch.Check(absl::Seconds(20)).ok());
}

}  // namespace
}  // namespace lockstep::worker
