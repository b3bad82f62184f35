#include "chief/recovery/view_keeper.h"

#include <catch2/catch.hpp>
#include <optional>

#include "common/base/lost_variables.h"
#include "common/base/running_clock.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

const LiveMember kA{WorkerIndex(0), Incarnation(10)};
const LiveMember kB{WorkerIndex(1), Incarnation(20)};

struct Fixture {
  void Answer(ScriptedPs* ps, absl::Status status = absl::OkStatus()) {
    ps->set_view.Answer(status.ok() ? absl::StatusOr<SetViewReply>(WithVariables()) : status);
    executor.Run();
  }
  static SetViewRequest View() {
    SetViewRequest view;
    view.mutable_command()->set_term(3);
    view.set_epoch(2);
    return view;
  }

  ScriptedPs a, b;
  ManualExecutor executor;
  ManualClock clock;
  RunningClock running{&clock};
  int confirmations = 0;
  std::optional<absl::Status> error;
  ViewKeeper views{View(),
                   {&a, &b},
                   {"ps 0 (a:1)", "ps 1 (b:2)"},
                   &executor,
                   &running,
                   &clock,
                   [this] { ++confirmations; },
                   [this](absl::Status status) { error = std::move(status); }};
};

TEST_CASE("a shard that has no variables any more is named") {
  Fixture f;
  f.views.SetMembers({kA});
  f.Answer(&f.a);
  f.b.set_view.Answer(SetViewReply());
  f.executor.Run();
  REQUIRE(f.error.has_value());
  CHECK(HasLostVariables(*f.error));
  CHECK(f.error->message().find("ps 1 (b:2) was started again") == 0);
  CHECK(f.confirmations == 0);
}

TEST_CASE("views have numbers that grow") {
  Fixture f;
  f.views.SetMembers({kA});
  const uint64_t first = f.a.set_view.front().number();
  f.Answer(&f.a);
  f.views.SetMembers({kA, kB});
  CHECK(f.a.set_view.front().number() > first);
}

TEST_CASE("a member counts when every shard has accepted it") {
  Fixture f;
  f.views.SetMembers({kA});
  REQUIRE(f.a.set_view.size() == 1);
  const SetViewRequest& told = f.b.set_view.front();
  CHECK(told.command().term() == 3);
  CHECK(told.epoch() == 2);
  CHECK(told.shard() == 1);
  REQUIRE(told.members_size() == 1);
  CHECK(told.members(0).incarnation() == 10);
  f.Answer(&f.a);
  CHECK_FALSE(f.views.IsConfirmed(kA));
  f.Answer(&f.b);
  CHECK(f.views.IsConfirmed(kA));
  CHECK_FALSE(f.views.IsConfirmed({kA.worker, Incarnation(11)}));
  CHECK(f.confirmations == 1);
}

TEST_CASE(
    "a view that all have is repeated every 5 seconds, for a ps knows its chief by its calls") {
  Fixture f;
  f.views.SetMembers({kA});
  f.Answer(&f.a);
  f.Answer(&f.b);
  // To a ps it is silence, too, that this chief is stopped.
  f.clock.Advance(absl::Milliseconds(4900));
  f.views.Tick();
  CHECK(f.a.set_view.size() == 0);
  f.clock.Advance(absl::Milliseconds(100));
  f.views.Tick();
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.a.set_view.front().members_size() == 1);
  f.Answer(&f.a);
  CHECK(f.confirmations == 1);
}

TEST_CASE("a change while a shard is busy is told when it has answered, the last one only") {
  Fixture f;
  f.views.SetMembers({kA});
  f.views.SetMembers({kA, kB});
  f.views.SetMembers({kB});
  CHECK(f.a.set_view.size() == 1);
  f.Answer(&f.a);
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.a.set_view.front().members(0).incarnation() == 20);
  f.Answer(&f.a);
  CHECK(f.confirmations == 0);
  f.Answer(&f.b);
  f.Answer(&f.b);
  CHECK(f.views.confirmed() == std::vector<LiveMember>{kB});
  CHECK(f.a.set_view.all().size() == 2);
}

TEST_CASE("a view that was lost is repeated, one that is refused is an error") {
  Fixture f;
  f.views.SetMembers({kA});
  f.Answer(&f.b);
  f.Answer(&f.a, absl::UnavailableError("gone"));
  f.clock.Advance(absl::Milliseconds(100));
  f.views.Tick();
  REQUIRE(f.a.set_view.size() == 1);
  CHECK_FALSE(f.error.has_value());
  f.Answer(&f.a, absl::AbortedError("term 4 is newer"));
  REQUIRE(f.error.has_value());
  CHECK(f.error->code() == absl::StatusCode::kAborted);
  f.views.SetMembers({kB});
  CHECK(f.a.set_view.size() == 0);
}

TEST_CASE("replica views count when every shard has accepted them, with the members of before") {
  Fixture f;
  f.views.SetMembers({kA});
  for (ScriptedPs* ps : {&f.a, &f.b}) f.Answer(ps);
  CHECK(f.views.HasConfirmedReplicas());
  ReplicaViews replicas;
  REQUIRE(replicas.Add({.number = 1, .first = GlobalStep(4), .workers = {WorkerIndex(0)}}).ok());
  f.views.SetReplicaViews(replicas);
  const SetViewRequest& told = f.a.set_view.front();
  REQUIRE(told.replica_views_size() == 1);
  CHECK(told.replica_views(0).first() == 4);
  CHECK(told.members_size() == 1);
  f.Answer(&f.a);
  CHECK_FALSE(f.views.HasConfirmedReplicas());
  f.Answer(&f.b);
  CHECK(f.views.HasConfirmedReplicas());
  CHECK(f.views.IsConfirmed(kA));
  // Members that follow bring them again.
  f.views.SetMembers({kA, kB});
  CHECK(f.a.set_view.front().replica_views_size() == 1);
  CHECK(f.views.HasConfirmedReplicas());
}

}  // namespace
}  // namespace lockstep::chief
