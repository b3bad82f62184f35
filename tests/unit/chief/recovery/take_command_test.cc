#include "chief/recovery/take_command.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/base/version.h"

namespace lockstep::chief {
namespace {

RecoverySpec TwoShards() {
  RecoverySpec spec;
  spec.shard_names = {"ps 0 (a:1)", "ps 1 (b:2)"};
  spec.job = 77;
  spec.epoch = Epoch(1);
  spec.end = GlobalStep(100);
  return spec;
}

SetViewReply At(int64_t shard_step, int64_t global_step, std::vector<int64_t> kept = {}) {
  SetViewReply reply;
  reply.set_job(55);
  reply.set_term(2);
  reply.set_epoch(1);
  reply.set_has_variables(true);
  reply.set_shard_step(shard_step);
  reply.set_global_step(global_step);
  for (const int64_t version : kept) reply.add_kept_versions(version);
  return reply;
}

using Versions = std::vector<GlobalStep>;

std::string WhyNot(const RecoverySpec& spec, const std::vector<SetViewReply>& shards) {
  const absl::Status status = FindProgress(spec, shards).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(status.message().find(". Remedy: ") != absl::string_view::npos);
  return std::string(status.message());
}

TEST_CASE("a job that has not begun begins where the chief says") {
  RecoverySpec spec = TwoShards();
  spec.variables.set_start_step(40);
  const auto progress = FindProgress(spec, {At(40, 40), SetViewReply()});
  REQUIRE(progress.ok());
  CHECK(progress->step == GlobalStep(40));
  CHECK_FALSE(progress->is_finished);
}

TEST_CASE("a job in training goes on at the step shard's step, whoever closed more") {
  for (const int64_t other : {12, 13, 14}) {
    for (const int64_t step_shard : {12, 13}) {
      const auto progress = FindProgress(TwoShards(), {At(step_shard, 12), At(other, 0)});
      REQUIRE(progress.ok());
      CHECK(progress->step == GlobalStep(12));
    }
  }
}

TEST_CASE("shards that do not belong together are refused by name") {
  CHECK(
      WhyNot(TwoShards(), {At(12, 12), At(11, 0)}) ==
      "ps 1 (b:2) is at step 11, the job at step 12. Remedy: start the chief with --resume: every "
      "ps goes back to the newest checkpoint");
  CHECK(WhyNot(TwoShards(), {At(12, 12), At(15, 0)}).find("ps 1 (b:2) is at step 15") == 0);
  CHECK(WhyNot(TwoShards(), {At(12, 12), SetViewReply()}).find("ps 1 (b:2) has lost") == 0);
  CHECK(WhyNot(TwoShards(), {SetViewReply(), At(12, 0)}).find("ps 0 (a:1) has lost") == 0);
}

// A chief that resumes goes on from shards that fit together, and would meet the same end.
TEST_CASE("shards that are past the end of the job are refused without naming --resume") {
  CHECK(WhyNot(TwoShards(), {At(101, 101), At(101, 0)}) ==
        "ps 0 (a:1) is at step 101, and the job ends at step 100. Remedy: raise max_steps or "
        "data_epochs to 101 steps or more; or end every ps, start them again, and give the chief "
        "--restore or --fresh");
}

TEST_CASE("shards of two jobs are refused without naming --resume") {
  SetViewReply other = At(12, 0);
  other.set_job(8);
  SetViewReply own = At(12, 12);
  own.set_job(7);
  const absl::Status refused = TakeCommand(TwoShards(), {own, other}).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK(refused.message() ==
        "ps 1 (b:2) belongs to another job than the ps before it. Remedy: correct the addresses "
        "of the ps in the cluster spec, or end the ps of the other job and start them again");
}

TEST_CASE("shards that do not belong together can be started again by a chief that resumes") {
  RecoverySpec spec = TwoShards();
  spec.mode = StartMode::kResume;
  const absl::Status torn = FindProgress(spec, {At(12, 12), SetViewReply()}).status();
  CHECK(ExitCodeFor(torn) == ExitCode::kPeersLost);
  CHECK(HasLostVariables(torn));
  const absl::Status apart = FindProgress(spec, {At(12, 12), At(15, 0)}).status();
  CHECK(ExitCodeFor(apart) == ExitCode::kPeersLost);
  CHECK_FALSE(HasLostVariables(apart));
  const absl::Status beyond = FindProgress(spec, {At(101, 101), At(101, 0)}).status();
  CHECK(ExitCodeFor(beyond) == ExitCode::kBadConfiguration);
}

TEST_CASE("shards of an asynchronous job have versions of their own") {
  RecoverySpec spec = TwoShards();
  spec.variables.set_asynchronous(true);
  const auto progress = FindProgress(spec, {At(12, 12), At(9, 0)});
  REQUIRE(progress.ok());
  CHECK(progress->step == GlobalStep(12));
}

TEST_CASE("what all shards keep is told from what only some still keep") {
  const auto progress = FindProgress(TwoShards(), {At(12, 12, {10, 12}), At(13, 0, {8, 10, 13})});
  REQUIRE(progress.ok());
  CHECK(progress->kept_by_all == Versions{GlobalStep(10)});
  CHECK(progress->kept == Versions{GlobalStep(8), GlobalStep(10), GlobalStep(12), GlobalStep(13)});
}

TEST_CASE("after the last step it is granted again, and done unless its version is still kept") {
  const auto kept = FindProgress(TwoShards(), {At(100, 100, {100}), At(100, 0, {100})});
  REQUIRE(kept.ok());
  CHECK(kept->step == GlobalStep(99));
  CHECK_FALSE(kept->is_finished);
  const auto released = FindProgress(TwoShards(), {At(100, 100, {100}), At(100, 0)});
  REQUIRE(released.ok());
  CHECK(released->step == GlobalStep(99));
  CHECK(released->is_finished);
}

TEST_CASE("a last version is not done while any shard keeps it, where others may be copies") {
  RecoverySpec spec = TwoShards();
  spec.variables.mutable_sync()->set_ps_replicas(1);
  const auto promoted = FindProgress(spec, {At(100, 100, {100}), At(100, 0)});
  REQUIRE(promoted.ok());
  CHECK(promoted->has_made_all_steps);
  CHECK_FALSE(promoted->is_finished);
  const auto released = FindProgress(spec, {At(100, 100), At(100, 0)});
  REQUIRE(released.ok());
  CHECK(released->is_finished);
}

TEST_CASE("the members of the step shard stay members, unless this is another state") {
  SetViewReply step_shard = At(12, 12);
  step_shard.add_members()->set_worker(1);
  step_shard.mutable_members(0)->set_incarnation(10);
  const auto view = TakeCommand(TwoShards(), {step_shard, At(12, 0)});
  REQUIRE(view.ok());
  CHECK(view->command().job() == 55);
  CHECK(view->command().term() == 3);
  REQUIRE(view->members_size() == 1);
  CHECK(view->members(0).incarnation() == 10);
  RecoverySpec restoring = TwoShards();
  restoring.epoch = Epoch(2);
  CHECK(TakeCommand(restoring, {step_shard, At(12, 0)})->members_size() == 0);
}

TEST_CASE("a ps of another version is refused, naming both versions") {
  SetViewReply other = At(12, 0);
  other.set_version("0.0.1-older");
  const absl::Status refused = TakeCommand(TwoShards(), {At(12, 12), other}).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK(refused.message() ==
        absl::StrCat("ps 1 (b:2) is of version 0.0.1-older, the chief of version ", kVersion,
                     ". Remedy: install the same version everywhere"));
}

TEST_CASE("a chief that starts from a checkpoint does not drop what has trained further") {
  RecoverySpec spec = TwoShards();
  spec.epoch = Epoch(2);
  spec.variables.set_start_step(10);
  spec.variables.set_restore_from("/c/ckpt-10");
  spec.mode = StartMode::kRestore;
  CHECK(TakeCommand(spec, {At(10, 10), At(10, 10)}).ok());
  const absl::Status refused = TakeCommand(spec, {At(10, 10), At(11, 10)}).status();
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(refused.message().find("ps 1 (b:2) is at step 11") == 0);
  CHECK(refused.message().find("/c/ckpt-10") != absl::string_view::npos);
}

}  // namespace
}  // namespace lockstep::chief
