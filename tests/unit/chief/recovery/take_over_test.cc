// A chief that goes on with shards that know a job.
#include <catch2/catch.hpp>
#include <string>

#include "common/base/lost_variables.h"
#include "tests/unit/chief/recovery/initializer_fixture.h"

namespace lockstep::chief {
namespace {

using test::InitializerFixture;
using test::Options;
using test::Seen;
using test::Trained;

// Both are at step 60 of a job that ends at 90.
void FindTrainedShards(InitializerFixture* f) {
  SetViewReply first = Trained(60);
  first.set_job_text("max_steps: 90");
  f->Answer(&f->a.get_view, absl::StatusOr<SetViewReply>(first));
  f->Answer(&f->b.get_view, absl::StatusOr<SetViewReply>(Trained(60)));
  f->Answer(&f->a.set_view, absl::StatusOr<SetViewReply>(Trained(60)));
  f->Answer(&f->b.set_view, absl::StatusOr<SetViewReply>(Trained(60)));
}

TEST_CASE("a chief that takes over is told with which job the one before trained") {
  RecoverySpec spec = Options();
  spec.mode = StartMode::kResume;
  spec.variables.set_restore_from("/c/ckpt-40");
  InitializerFixture f(spec);
  FindTrainedShards(&f);
  REQUIRE(f.a.create.size() == 1);
  CHECK(f.a.create.front().restore_from().empty());
  f.Answer(&f.a.create, absl::StatusOr<CreateVariablesReply>(CreateVariablesReply()));
  f.Answer(&f.b.create, absl::StatusOr<CreateVariablesReply>(CreateVariablesReply()));
  REQUIRE(f.result->ok());
  CHECK((*f.result)->start == StartPoint::kTakeOver);
  CHECK((*f.result)->progress.step == GlobalStep(60));
  CHECK((*f.result)->job_before == "max_steps: 90");
}

TEST_CASE("a chief that takes over keeps of the job before what its hook says, or ends with it") {
  const absl::Status answer = GENERATE(absl::OkStatus(), absl::InvalidArgumentError("other text"));
  InitializerFixture f;
  f.keep = [&](const std::string& job_before, CreateVariablesRequest* variables) {
    variables->set_job_text(job_before + " seed: 1");
    return answer;
  };
  FindTrainedShards(&f);
  if (!answer.ok()) {
    CHECK(f.result->status() == answer);
    CHECK(f.a.create.size() == 0);
    return;
  }
  REQUIRE(f.a.create.size() == 1);
  CHECK(f.a.create.front().job_text() == "max_steps: 90 seed: 1");
}

TEST_CASE("a chief that fails knows whether the shards that it found can go on without it") {
  const bool have_trained = GENERATE(false, true);
  InitializerFixture f;
  f.accepted = absl::InternalError("a disk");
  for (ScriptedPs* ps : {&f.a, &f.b}) {
    f.Answer(&ps->get_view, absl::StatusOr<SetViewReply>(have_trained ? Trained(60) : Seen(0, 0)));
  }
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  CHECK(f.result->status() == f.accepted);
  CHECK(f.initializer.takes_over() == have_trained);
}

TEST_CASE("shards that have trained only when a chief commands them can go on without it, too") {
  InitializerFixture f;
  for (ScriptedPs* ps : {&f.a, &f.b}) {
    f.Answer(&ps->get_view, absl::StatusOr<SetViewReply>(Seen(55, 2, 3)));
  }
  for (ScriptedPs* ps : {&f.a, &f.b}) {
    f.Answer(&ps->set_view, absl::StatusOr<SetViewReply>(Trained(101)));
  }
  CHECK_THAT(std::string(f.result->status().message()),
             Catch::Contains("is at step 101, and the job ends at step 100"));
  CHECK(f.initializer.takes_over());
}

TEST_CASE("a chief does not go on from shards that lose what they had before it commands them") {
  const bool all = GENERATE(true, false);
  RecoverySpec spec = Options();
  spec.mode = GENERATE(StartMode::kBegin, StartMode::kResume, StartMode::kSucceed);
  spec.variables.set_start_step(0);
  InitializerFixture f(spec);
  // Only the second one has made a step, where it alone is lost.
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(all ? 60 : 0)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Trained(all ? 60 : 1)));
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(all ? Seen(55, 3, 3) : Trained(0)));
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(Seen(55, 3, 3)));
  CHECK(f.a.create.size() == 0);
  REQUIRE(f.result.has_value());
  CHECK(f.result->status() == LostVariablesError(all ? "ps 0 (a:1)" : "ps 1 (b:2)"));
}

TEST_CASE("a job that never began is taken over with its id") {
  const auto view = TakeCommand(Options(), {Seen(0, 0), Seen(55, 2, 4)});
  REQUIRE(view.ok());
  CHECK(view->command().job() == 55);
  CHECK(view->command().term() == 3);
  CHECK(view->epoch() == 4);
}

TEST_CASE("shards of different jobs are not mixed") {
  CHECK(TakeCommand(Options(), {Seen(55, 2), Seen(56, 2)}).status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lockstep::chief
