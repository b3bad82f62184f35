// A chief's lease over gRPC: begun and renewed by the chief's calls, watched by a standby.
#include "ps/service/command_calls.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/client/status_client.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

SetViewRequest ViewWithLease(uint64_t term = 1) {
  SetViewRequest view = TwoWorkers(term);
  view.set_lease_ms(60'000);
  view.set_chief_index(1);
  return view;
}

RenewLeaseRequest RenewalOf(const SetViewRequest& view) {
  RenewLeaseRequest renewal;
  *renewal.mutable_command() = view.command();
  renewal.set_lease_ms(view.lease_ms());
  renewal.set_chief_index(view.chief_index());
  return renewal;
}

WatchCommandRequest WatchOf(uint64_t term) {
  WatchCommandRequest watch;
  watch.set_term(term);
  watch.set_caller(5);
  watch.set_cluster(kTestCluster);
  return watch;
}

TEST_CASE("a view begins the lease, which GetView and the status show") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const auto seen = [&] { return *CallAndWait(*control, kGetView, GetViewRequest()); };
  CHECK(seen().command_status().state() == CommandStatus::NONE);
  CHECK(FetchStatus(ps.address(), absl::Seconds(5))->shard().command().state() == "none");
  REQUIRE(CallAndWait(*control, kSetView, ViewWithLease()).ok());
  const CommandStatus held = seen().command_status();
  CHECK(held.state() == CommandStatus::HELD);
  CHECK(held.term() == 1);
  CHECK(held.lease_ms() == 60'000);
  CHECK(held.left_ms() > 0);
  const CommandSummary shown = FetchStatus(ps.address(), absl::Seconds(5))->shard().command();
  CHECK(shown.state() == "held");
  CHECK(shown.chief() == 1);
  CHECK(shown.lease_seconds() == 60);
}

TEST_CASE("the status shows the address of a chief that has moved, as the chief tells it") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  SetViewRequest view = ViewWithLease();
  view.set_cluster("chief a:1\nchief 1 moved:9\n");
  view.add_earlier_clusters(kTestCluster);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  const CommandSummary shown = FetchStatus(ps.address(), absl::Seconds(5))->shard().command();
  CHECK(shown.chief() == 1);
  CHECK(shown.address() == "moved:9");
}

TEST_CASE("a chief whose place another one has renews and ends nothing") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const SetViewRequest old = ViewWithLease();
  REQUIRE(CallAndWait(*control, kSetView, old).ok());
  SetViewRequest next = ViewWithLease(2);
  next.mutable_command()->set_chief(old.command().chief() + 1);
  REQUIRE(CallAndWait(*control, kSetView, next).ok());
  RenewLeaseRequest renewal = RenewalOf(old);
  CHECK(absl::IsAborted(CallAndWait(*control, kRenewLease, renewal).status()));
  renewal.set_end(CommandStatus::JOB_OVER);
  CHECK(absl::IsAborted(CallAndWait(*control, kRenewLease, renewal).status()));
  REQUIRE(CallAndWait(*control, kRenewLease, RenewalOf(next)).ok());
  const auto seen = CallAndWait(*control, kGetView, GetViewRequest());
  CHECK(seen->command_status().state() == CommandStatus::HELD);
  CHECK(seen->command_status().term() == 2);
}

TEST_CASE("an end that is none is refused") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const SetViewRequest view = ViewWithLease();
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  RenewLeaseRequest renewal = RenewalOf(view);
  renewal.set_end(CommandStatus::EXPIRED);
  CHECK(absl::IsInvalidArgument(CallAndWait(*control, kRenewLease, renewal).status()));
}

TEST_CASE("a standby hears of a chief that leaves, and of the end of the job") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const SetViewRequest view = ViewWithLease();
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  const auto after = [&](const RenewLeaseRequest& end) {
    absl::Notification told;
    CommandStatus status;
    control->Call(kWatchCommand, WatchOf(1), [&](const absl::StatusOr<WatchCommandReply>& reply) {
      if (reply.ok()) status = reply->command();
      told.Notify();
    });
    REQUIRE(CallAndWait(*control, kRenewLease, end).ok());
    told.WaitForNotification();
    return status;
  };
  RenewLeaseRequest end = RenewalOf(view);
  SECTION("it leaves") {
    end.set_end(CommandStatus::RELEASED);
    CHECK(after(end).state() == CommandStatus::RELEASED);
  }
  SECTION("it gives the job up, and the ps keep the model") {
    end.set_end(CommandStatus::JOB_OVER);
    end.set_exit_code(138);
    end.set_reason("the disk\nis full");
    const CommandStatus over = after(end);
    CHECK(over.state() == CommandStatus::JOB_OVER);
    CHECK(over.exit_code() == 138);
    CHECK(over.reason() == "the disk\\nis full");
    CHECK_FALSE(ps.finished.HasBeenNotified());
  }
}

TEST_CASE("a standby that could not take command is refused as the chief would be") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  REQUIRE(CallAndWait(*control, kSetView, ViewWithLease()).ok());
  const auto refusal = [&](const WatchCommandRequest& watch) {
    return CallAndWait(*control, kWatchCommand, watch).status();
  };
  WatchCommandRequest watch = WatchOf(0);
  watch.set_version("0.0.1-older");
  CHECK(absl::IsFailedPrecondition(refusal(watch)));
  CHECK(absl::StrContains(refusal(watch).message(), "the chief of version 0.0.1-older"));
  watch = WatchOf(0);
  watch.set_cluster("chief 0 h:1\nps 0 h:2\nworker 0 other:3\n");
  CHECK(absl::IsFailedPrecondition(refusal(watch)));
  CHECK(absl::StrContains(refusal(watch).message(), "other:3"));
  watch.add_earlier_clusters(kTestCluster);
  CHECK(refusal(watch).ok());
  watch = WatchOf(0);
  watch.set_cluster(absl::StrCat(kTestCluster, "worker 9 h:9\n"));
  watch.set_elastic(true);
  CHECK(refusal(watch).ok());
}

TEST_CASE("a ps whose job is over tells standbys until it has ended") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  REQUIRE(CallAndWait(*control, kSetView, ViewWithLease()).ok());
  FinishRequest finish;
  *finish.mutable_command() = ViewWithLease().command();
  finish.set_exit_code(79);
  finish.set_reason("training diverged");
  REQUIRE(CallAndWait(*control, kFinish, finish).ok());
  const auto reply = CallAndWait(*control, kWatchCommand, WatchOf(1));
  REQUIRE(reply.ok());
  CHECK(reply->command().state() == CommandStatus::JOB_OVER);
  CHECK(reply->command().exit_code() == 79);
  CHECK(reply->command().reason() == "training diverged");
}

}  // namespace
}  // namespace lockstep::ps
