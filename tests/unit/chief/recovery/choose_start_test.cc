#include "chief/recovery/choose_start.h"

#include <catch2/catch.hpp>
#include <vector>

#include "common/base/exit_code.h"

namespace lockstep::chief {
namespace {

// Of a job of 100 steps, with a checkpoint of step `start` if that is not 0.
RecoverySpec SpecOf(StartMode mode, int64_t start = 0) {
  RecoverySpec spec;
  spec.shard_names = {"ps 0 (a:1)", "ps 1 (b:2)"};
  spec.job = 77;
  spec.epoch = Epoch(start == 0 ? 1 : 2);
  spec.end = GlobalStep(100);
  spec.mode = mode;
  spec.variables.set_start_step(start);
  if (start > 0) spec.variables.set_restore_from("/c/ckpt");
  return spec;
}

SetViewReply At(int64_t step, uint64_t epoch = 1) {
  SetViewReply reply;
  reply.set_job(55);
  reply.set_epoch(epoch);
  reply.set_has_variables(true);
  reply.set_shard_step(step);
  reply.set_global_step(step);
  return reply;
}

const SetViewReply kNew;

StartPoint Resumed(int64_t checkpoint, const std::vector<SetViewReply>& seen) {
  const auto start = ChooseStart(SpecOf(StartMode::kResume, checkpoint), seen);
  REQUIRE(start.ok());
  return *start;
}

TEST_CASE("a chief that resumes goes on from shards that have trained, whatever was saved") {
  for (const int64_t checkpoint : {0, 10, 50, 100}) {
    CHECK(Resumed(checkpoint, {At(20), At(20)}) == StartPoint::kTakeOver);
    CHECK(Resumed(checkpoint, {At(100), At(100)}) == StartPoint::kTakeOver);
  }
}

TEST_CASE("a standby goes on from shards that have trained together, and from nothing else") {
  const auto succeed = [](const std::vector<SetViewReply>& seen) {
    return *ChooseStart(SpecOf(StartMode::kSucceed), seen);
  };
  CHECK(succeed({At(20), At(20)}) == StartPoint::kTakeOver);
  CHECK(succeed({At(20), At(21)}) == StartPoint::kTakeOver);
  CHECK(succeed({At(100), At(100)}) == StartPoint::kTakeOver);
  CHECK(succeed({At(0), At(0)}) == StartPoint::kPlanAfresh);
  CHECK(succeed({At(20), kNew}) == StartPoint::kPlanAfresh);
  CHECK(succeed({At(20), At(20, 2)}) == StartPoint::kPlanAfresh);
  CHECK(succeed({kNew, kNew}) == StartPoint::kPlanAfresh);
}

TEST_CASE("steps that are made while shards are asked do not set the job back") {
  const std::vector<SetViewReply> apart = {At(65), At(60)};
  for (const StartMode mode : {StartMode::kSucceed, StartMode::kResume}) {
    const RecoverySpec spec = SpecOf(mode, 10);
    CHECK(AreStepsApart(spec, apart));
    CHECK(*ChooseStart(spec, apart) != StartPoint::kTakeOver);
    CHECK(*ChooseStart(spec, apart, /*moves=*/true) == StartPoint::kTakeOver);
    // What does not belong together for another reason goes back all the same.
    for (const std::vector<SetViewReply>& seen :
         {std::vector{At(65), kNew}, std::vector{At(65), At(60, 2)}, std::vector{kNew, kNew}}) {
      CHECK_FALSE(AreStepsApart(spec, seen));
      CHECK(*ChooseStart(spec, seen, /*moves=*/true) != StartPoint::kTakeOver);
    }
    CHECK_FALSE(AreStepsApart(spec, {At(65), At(65)}));
  }
  CHECK_FALSE(AreStepsApart(SpecOf(StartMode::kBegin), apart));
}

TEST_CASE(
    "a standby of a replicated job goes on, because the workers live that have the variables") {
  RecoverySpec spec = SpecOf(StartMode::kSucceed);
  spec.variables.mutable_placement()->add_variables()->set_replicated(true);
  CHECK(*ChooseStart(spec, {At(20), At(20)}) == StartPoint::kTakeOver);
}

TEST_CASE("a chief that resumes restores where no shard has trained, or begins") {
  for (const int64_t checkpoint : {0, 10}) {
    CHECK(Resumed(checkpoint, {kNew, kNew}) == StartPoint::kAsSpecified);
    CHECK(Resumed(checkpoint, {At(0), At(0)}) == StartPoint::kAsSpecified);
    CHECK(Resumed(checkpoint, {At(0), kNew}) == StartPoint::kAsSpecified);
  }
  // Created by a chief that died before the others were.
  CHECK(Resumed(10, {At(10, 2), kNew}) == StartPoint::kAsSpecified);
}

TEST_CASE("shards that do not belong together go back to where the chief begins") {
  CHECK(Resumed(0, {At(20), kNew}) == StartPoint::kAsSpecified);
  CHECK(Resumed(10, {kNew, At(20)}) == StartPoint::kAsSpecified);
  CHECK(Resumed(10, {At(20), At(30)}) == StartPoint::kAsSpecified);
  // One went back already, with a chief that died then.
  CHECK(Resumed(10, {At(20, 2), At(20, 1)}) == StartPoint::kAsSpecified);
  for (const int64_t step : {10, 20}) {
    const RecoverySpec spec = RecoverySpecFor(StartPoint::kAsSpecified,
                                              SpecOf(StartMode::kResume, 10), {kNew, At(step, 7)});
    CHECK(spec.epoch == Epoch(8));
    CHECK(spec.variables.restore_from() == "/c/ckpt");
  }
}

TEST_CASE("a job whose last step was saved is done, unless all shards say more") {
  CHECK(Resumed(100, {kNew, kNew}) == StartPoint::kDone);
  CHECK(Resumed(100, {At(100), kNew}) == StartPoint::kDone);
  CHECK(Resumed(100, {At(0), At(0)}) == StartPoint::kDone);
}

TEST_CASE("what shards have of a replicated job is older than its checkpoint and not resumed") {
  for (const int64_t checkpoint : {0, 10}) {
    RecoverySpec spec = SpecOf(StartMode::kResume, checkpoint);
    spec.variables.mutable_placement()->add_variables()->set_replicated(true);
    for (const int64_t step : {20, 100}) {
      CHECK(*ChooseStart(spec, {At(step), At(step)}) == StartPoint::kAsSpecified);
    }
    const RecoverySpec chosen =
        RecoverySpecFor(StartPoint::kAsSpecified, spec, {At(20, 7), At(20, 7)});
    CHECK(chosen.epoch == Epoch(8));
    CHECK(chosen.variables.restore_from() == spec.variables.restore_from());
  }
}

TEST_CASE("a recovery that takes over leaves its checkpoint and its epoch") {
  const std::vector<SetViewReply> seen = {At(20, 2), At(20, 2)};
  const RecoverySpec spec =
      RecoverySpecFor(StartPoint::kTakeOver, SpecOf(StartMode::kResume, 10), seen);
  CHECK(spec.variables.restore_from().empty());
  const auto view = TakeCommand(spec, seen);
  REQUIRE(view.ok());
  CHECK(view->epoch() == 2);
  CHECK(FindProgress(spec, seen)->step == GlobalStep(20));
  // That of the checkpoint would be a later one, in which the shards have no variables.
  const std::vector<SetViewReply> first = {At(20, 1), At(20, 1)};
  const RecoverySpec same =
      RecoverySpecFor(StartPoint::kTakeOver, SpecOf(StartMode::kResume, 10), first);
  REQUIRE(TakeCommand(same, first).ok());
  CHECK(TakeCommand(same, first)->epoch() == 1);
}

TEST_CASE("variables that are not those of the checkpoint make room in an epoch of their own") {
  const std::vector<SetViewReply> seen = {At(0, 7), kNew};
  const RecoverySpec spec =
      RecoverySpecFor(StartPoint::kAsSpecified, SpecOf(StartMode::kResume, 10), seen);
  CHECK(spec.epoch == Epoch(8));
  CHECK(spec.variables.restore_from() == "/c/ckpt");
  // Those that are its own stay.
  const RecoverySpec same = RecoverySpecFor(StartPoint::kAsSpecified,
                                            SpecOf(StartMode::kResume, 10), {At(10, 2), At(10, 2)});
  CHECK(same.epoch == Epoch(2));
}

TEST_CASE("a shard that one of its two ps has and the other one lacks is made in another epoch") {
  SetViewReply half = At(0, 3);
  half.set_has_variables(false);
  half.set_awaits_state(true);
  for (const StartMode mode : {StartMode::kBegin, StartMode::kFresh, StartMode::kResume}) {
    const RecoverySpec spec = RecoverySpecFor(StartPoint::kAsSpecified, SpecOf(mode), {half, half});
    CHECK(spec.epoch == Epoch(4));
  }
  // Steps that were made are given up by a chief that resumes alone.
  half.set_shard_step(20);
  const auto epoch_of = [&](StartMode mode) {
    return RecoverySpecFor(StartPoint::kAsSpecified, SpecOf(mode), {half, half}).epoch;
  };
  CHECK(epoch_of(StartMode::kResume) == Epoch(4));
  CHECK(epoch_of(StartMode::kBegin) == Epoch(1));
  half = kNew;
  half.set_epoch(3);
  CHECK(epoch_of(StartMode::kResume) == Epoch(1));
}

TEST_CASE("a beginning that would bury checkpoints is refused before anything trains") {
  RecoverySpec spec = SpecOf(StartMode::kBegin);
  spec.earlier = "/c/ckpt-30";
  const absl::Status refused = ChooseStart(spec, {kNew, At(0)}).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK(refused.message() ==
        "/c/ckpt-30 is of an earlier run, and no ps is in training. Remedy: --resume to go on from "
        "the newest checkpoint, --fresh to begin at step 0 and set the earlier ones aside, or "
        "another checkpoint.folder in the job");
  // A chief that comes after one that died goes on, its own checkpoints notwithstanding.
  CHECK(*ChooseStart(spec, {At(20), At(20)}) == StartPoint::kTakeOver);
  spec.mode = StartMode::kFresh;
  CHECK(*ChooseStart(spec, {kNew, At(0)}) == StartPoint::kAsSpecified);
  CHECK(*ChooseStart(spec, {At(20), At(20)}) == StartPoint::kTakeOver);
}

}  // namespace
}  // namespace lockstep::chief
