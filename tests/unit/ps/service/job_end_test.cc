// What a ps tells its process and others: its state, the end of its job, and what it keeps for the
// next chief.
#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "common/client/status_client.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

TEST_CASE("Status and events follow a ps through its life") {
  RunningPs ps;
  auto status = FetchStatus(ps.address(), absl::Seconds(5));
  REQUIRE(status.ok());
  CHECK(status->role() == "ps");
  CHECK(status->state() == "starting");
  CHECK(status->incarnation() == 3);
  CHECK(ps.chief_calls == 0);
  ps.CreateVariables({3, 100});
  CHECK(ps.chief_calls == 2);
  CHECK(ps.created == 1);
  status = FetchStatus(ps.address(), absl::Seconds(5));
  REQUIRE(status.ok());
  CHECK(status->state() == "training");
  CHECK(status->shard().variables() == 2);
  CHECK(status->shard().bytes() == 412);
  const auto control = MakePsControl(ps.client());
  REQUIRE(CallAndWait(*control, kFinish, JobIsOver()).ok());
  ps.finished.WaitForNotification();  // after the answer
  CHECK(ps.end.code == ExitCode::kDone);
  CHECK(ps.end.reason.empty());
}

TEST_CASE("A ps without tokens tells the steps that it has closed") {
  RunningPs ps("127.0.0.1:0", 1);
  const auto control = MakePsControl(ps.client());
  SetViewRequest view = TwoWorkers();
  view.set_shard(1);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  CreateVariablesRequest create = Variables({3});
  create.mutable_placement()->set_shards(2);
  create.mutable_placement()->mutable_variables(0)->set_shard(1);
  REQUIRE(CallAndWait(*control, kCreateVariables, create).ok());
  GrantRequest grant = Granted(0);
  grant.set_commit(false);
  Answer<GrantReply> closed;
  control->Call(kGrant, grant, closed.done());
  const auto data = MakePsData(ps.client());
  const std::vector<float> gradient = {1, 2, 3};
  for (uint32_t worker : {0, 1}) {
    REQUIRE(Await<PushReply>([&](auto done) {
              data->Push(PushOf(worker, 0, 0, 3, 0, 3), {BytesOf(gradient)}, std::move(done));
            }).ok());
  }
  REQUIRE(closed.Wait().ok());
  const auto status = FetchStatus(ps.address(), absl::Seconds(5));
  REQUIRE(status.ok());
  CHECK(status->shard().shard_step() == 1);
  CHECK(status->global_step() == 1);
}

TEST_CASE("A ps whose job was given up ends with the chief's code, and knows why") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto control = MakePsControl(ps.client());
  FinishRequest given_up = JobIsOver();
  given_up.set_exit_code(256);
  const auto refused = CallAndWait(*control, kFinish, given_up);
  CHECK(absl::IsInvalidArgument(refused.status()));
  given_up.set_exit_code(138);
  given_up.set_reason("ps 1 was started again\nand has lost its variables");
  REQUIRE(CallAndWait(*control, kFinish, given_up).ok());
  ps.finished.WaitForNotification();
  CHECK(ps.end.code == ExitCode::kPeersLost);
  CHECK(ps.end.reason == "ps 1 was started again\\nand has lost its variables");
}

TEST_CASE("A ps that was started again is ended by the end of the job, not by its failure") {
  const auto code = GENERATE(ExitCode::kDone, ExitCode::kInterrupted);
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  FinishRequest given_up = JobIsOver();
  given_up.set_exit_code(138);
  CHECK_FALSE(CallAndWait(*control, kFinish, given_up).ok());
  CHECK_FALSE(ps.finished.HasBeenNotified());
  FinishRequest over = JobIsOver();
  over.set_exit_code(static_cast<int>(code));
  REQUIRE(CallAndWait(*control, kFinish, over).ok());
  ps.finished.WaitForNotification();
  CHECK(ps.end.code == code);
}

TEST_CASE("A ps that leaves its job refuses chiefs, and keeps its variables until it ends") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto control = MakePsControl(ps.client());
  REQUIRE(CallAndWait(*control, kGetView, GetViewRequest()).ok());
  ps.server().Leave();
  const absl::Status refused = CallAndWait(*control, kGetView, GetViewRequest()).status();
  CHECK(absl::IsUnavailable(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("it was told to end"));
  CHECK(absl::IsUnavailable(CallAndWait(*control, kSetView, TwoWorkers()).status()));
  // The chief keeps its lease until it finds the other ps of the shard.
  CHECK_FALSE(
      absl::IsUnavailable(CallAndWait(*control, kRenewLease, RenewLeaseRequest()).status()));
  CHECK(ps.shard().GetView().has_variables);
  CHECK(CallAndWait(*control, kFinish, JobIsOver()).ok());
}

TEST_CASE("A ps keeps the texts of job and model for the next chief") {
  RunningPs ps;
  const auto control = MakePsControl(ps.client());
  const auto view = [&] { return CallAndWait(*control, kGetView, GetViewRequest()); };
  REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
  CHECK(view()->job_text().empty());
  CreateVariablesRequest create = Variables({3});
  for (const std::string job : {"max_steps: 10", "max_steps: 20"}) {
    create.set_job_text(job);
    create.set_model_text("input_shape: 2");
    REQUIRE(CallAndWait(*control, kCreateVariables, create).ok());
    CHECK(view()->job_text() == job);
    CHECK(view()->model_text() == "input_shape: 2");
  }
}

}  // namespace
}  // namespace lockstep::ps
