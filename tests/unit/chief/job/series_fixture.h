// A JobSeries of a job whose only ps is started again whenever the test wants it.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "chief/job/job_series.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {

struct SeriesFixture {
  explicit SeriesFixture(const std::string& checkpoints)
      : series(
            PlanWith(checkpoints), {.job_id = 9, .clusters = clusters, .waits_for_disk = true},
            {&ps}, &executor, &clock, [] {},
            [this](absl::Status status) {
              CHECK_FALSE(ended.has_value());
              ended = std::move(status);
            }) {
    series.Start();
  }
  static JobPlan PlanWith(const std::string& checkpoints) {
    JobPlan plan = TwoWorkerPlan(4);
    plan.job.mutable_checkpoint()->set_folder(checkpoints);
    return plan;
  }

  // Until the variables are to be created, in a view that is returned.
  SetViewRequest TakeCommand(const SetViewReply& seen = SetViewReply()) {
    executor.Run();
    REQUIRE(ps.get_view.size() == 1);
    ps.get_view.Answer(seen);
    executor.Run();
    const SetViewRequest view = ps.set_view.front();
    ps.set_view.Answer(SetViewReply());
    executor.Run();
    REQUIRE(ps.create.size() == 1);
    return view;
  }
  // The checkpoint is being read then; the executor gets the result.
  void LoseVariables() {
    ps.create.Answer(LostVariablesError("ps 0 (127.0.0.1:1)"));
    REQUIRE(executor.RunNext());
  }
  // The job goes back. Returns the command of its next view, which the step shard has not answered.
  Command GoBack() {
    TakeCommand();
    LoseVariables();
    executor.AwaitWork();
    ps.get_view.Answer(SetViewReply());
    executor.Run();
    REQUIRE(ps.set_view.size() == 1);
    CHECK(ps.set_view.front().command().term() == 2);
    return ps.set_view.front().command();
  }

  // The ps is told that the job has ended so.
  void FinishPs(ExitCode code) {
    REQUIRE(ps.finishes.size() == 1);
    CHECK(ps.finishes.front().exit_code() == static_cast<int>(code));
    CHECK(ps.finishes.front().command().term() == 1);
    ps.finishes.Answer(FinishReply());
    executor.Run();
  }

  // The step shard is told that nobody commands.
  void ReleaseLease() {
    REQUIRE(ps.renewals.size() == 1);
    CHECK(ps.renewals.front().end() == CommandStatus::RELEASED);
    ps.renewals.Answer(RenewLeaseReply());
    executor.Run();
  }

  // The step shard is told that the job is over, for those that stand by.
  void HearOfTheEnd() {
    REQUIRE(ps.renewals.size() == 1);
    CHECK(ps.renewals.front().end() == CommandStatus::JOB_OVER);
    ps.renewals.Answer(RenewLeaseReply());
    executor.Run();
  }

  // Each job has it.
  const std::shared_ptr<const KnownClusterSpecs> clusters =
      std::make_shared<KnownClusterSpecs>(PlanWith("").cluster.Canonical());
  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  std::optional<absl::Status> ended;
  JobSeries series;
  JobController* const first = series.job();
};

}  // namespace lockstep::chief
