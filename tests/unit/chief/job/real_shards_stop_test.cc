// An operator's stop in each phase of a job: what is saved, who is told, what the operator hears.
#include <catch2/catch.hpp>
#include <memory>

#include "common/base/limits.h"
#include "tests/unit/chief/job/real_shards_fixture.h"

namespace lockstep::chief {
namespace {

// The answer to one call; empty while it is parked.
using StopAnswer = std::shared_ptr<std::optional<absl::StatusOr<StopReply>>>;

StopAnswer Stop(Cluster* cluster) {
  auto got = std::make_shared<std::optional<absl::StatusOr<StopReply>>>();
  cluster->series->StopForOperator(
      Answer<StopReply>([got](absl::StatusOr<StopReply> reply) { *got = std::move(reply); }));
  cluster->executor->Run();
  return got;
}

StopReply Heard(const StopAnswer& answer) {
  REQUIRE(answer->has_value());
  INFO((*answer)->status().ToString());
  REQUIRE((*answer)->ok());
  return ***answer;
}

// The worker hears of the end with its heartbeat, if at all within the time it has.
void PassToEnd(Cluster* cluster) {
  for (int seconds = 0; seconds < 30 && !cluster->ended.has_value(); ++seconds) {
    cluster->Pass(absl::Seconds(1));
  }
  REQUIRE(cluster->ended.has_value());
}

void CheckStopped(const Cluster& cluster, const StopReply& reply, int64_t step,
                  const std::string& checkpoint) {
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kInterrupted);
  CHECK(reply.exit_code() == 130);
  CHECK(reply.global_step() == step);
  CHECK(reply.checkpoint() == checkpoint);
  CHECK(reply.save_error().empty());
}

TEST_CASE("a job that is stopped in training is saved, and everybody is told before the operator") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  const StopAnswer first = Stop(&cluster);
  CHECK(cluster.Status().state() == "saving");
  const StopAnswer second = Stop(&cluster);
  const std::string folder = CheckpointFolder(root.path(), 2);
  cluster.AwaitCheckpoint(folder);
  CHECK_FALSE(first->has_value());
  PassToEnd(&cluster);
  const auto token = cluster.Dequeue();
  REQUIRE(token->has_value());
  CHECK((*token)->done);
  for (const StopAnswer& answer : {first, second, Stop(&cluster)}) {
    const StopReply reply = Heard(answer);
    CheckStopped(cluster, reply, 2, folder);
    CHECK(reply.checkpoint_step() == 2);
    CHECK(reply.reason() == "an operator has stopped the job");
  }
  CHECK(*ResolveCheckpoint(root.path()) == folder);
}

TEST_CASE("a job that is stopped before its first step has nothing to save") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  const bool registers = GENERATE(false, true);
  if (registers) REQUIRE(cluster.Register().ready());
  CHECK(cluster.Status().state() == (registers ? "training" : "starting"));
  const StopAnswer answer = Stop(&cluster);
  PassToEnd(&cluster);
  CheckStopped(cluster, Heard(answer), 0, "");
}

struct SavingJob {
  SavingJob(int64_t max_steps, int64_t steps) : cluster(Plan(max_steps, root.path())) {
    REQUIRE(cluster.Register().ready());
    TrainTo(&cluster, 0, steps);
  }
  test::TemporaryFolder root;
  Cluster cluster;
};

// A job that has made `steps`, while a version is written. The disk may be faster than this thread;
// then another one is begun.
std::unique_ptr<SavingJob> MakeSavingJob(int64_t max_steps, int64_t steps) {
  for (int tries = 0; tries < 100; ++tries) {
    auto job = std::make_unique<SavingJob>(max_steps, steps);
    if (job->cluster.job->record().checkpoint.empty()) return job;
  }
  FAIL("each save has ended before it could be stopped");
  return nullptr;
}

TEST_CASE("a stop while a version is written waits for that, and saves what came after it") {
  const int64_t steps = GENERATE(3, 4);  // every third one is saved
  CAPTURE(steps);
  const auto saving = MakeSavingJob(8, steps);
  Cluster& cluster = saving->cluster;
  const StopAnswer answer = Stop(&cluster);
  const std::string folder = CheckpointFolder(saving->root.path(), steps);
  cluster.AwaitCheckpoint(folder);
  PassToEnd(&cluster);
  CheckStopped(cluster, Heard(answer), steps, folder);
}

TEST_CASE("a stop while the last version is saved leaves a whole checkpoint of it") {
  const auto saving = MakeSavingJob(2, 2);
  Cluster& cluster = saving->cluster;
  REQUIRE_FALSE(cluster.ended.has_value());
  const StopAnswer answer = Stop(&cluster);
  const std::string folder = CheckpointFolder(saving->root.path(), 2);
  cluster.AwaitCheckpoint(folder);
  PassToEnd(&cluster);
  CheckStopped(cluster, Heard(answer), 2, folder);
}

TEST_CASE("a stop of a job that is done and tells everybody changes nothing") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(2, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  REQUIRE_FALSE(cluster.ended.has_value());
  const StopAnswer answer = Stop(&cluster);
  CHECK_FALSE(answer->has_value());
  PassToEnd(&cluster);
  CHECK(cluster.ended->ok());
  CHECK(Heard(answer).exit_code() == 0);
  CHECK(Heard(answer).checkpoint_step() == 2);
}

TEST_CASE("a stop takes the place of a chief's leave: ps and workers end, too") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.series->Leave(WithExitCode(absl::CancelledError("left"), ExitCode::kTerminated));
  const StopAnswer answer = Stop(&cluster);
  const std::string folder = CheckpointFolder(root.path(), 2);
  cluster.AwaitCheckpoint(folder);
  PassToEnd(&cluster);
  CheckStopped(cluster, Heard(answer), 2, folder);
  const auto token = cluster.Dequeue();
  REQUIRE(token->has_value());
  CHECK((*token)->done);
}

TEST_CASE("an operator hears why the last committed step is not saved") {
  const test::TemporaryFolder root;
  const std::string file = root.Write("checkpoints", "in the way");
  const bool has_folder = GENERATE(true, false);
  Cluster cluster(Plan(8, has_folder ? file : ""), /*waits_for_disk=*/true);
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  const StopAnswer answer = Stop(&cluster);
  PassToEnd(&cluster);
  const StopReply reply = Heard(answer);
  CHECK(reply.exit_code() == 130);
  CHECK(reply.global_step() == 2);
  CHECK(reply.checkpoint().empty());
  INFO(reply.save_error());
  CHECK(reply.save_error().find(has_folder ? file : "the job has no checkpoint folder") !=
        std::string::npos);
}

TEST_CASE("operators beyond a limit are refused, and the job ends all the same") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  std::vector<StopAnswer> parked;
  for (size_t i = 0; i < limits::kMaxParkedStops; ++i) parked.push_back(Stop(&cluster));
  const StopAnswer refused = Stop(&cluster);
  REQUIRE(refused->has_value());
  CHECK(absl::IsResourceExhausted((*refused)->status()));
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  PassToEnd(&cluster);
  for (const StopAnswer& answer : parked) CHECK(Heard(answer).exit_code() == 130);
}

}  // namespace
}  // namespace lockstep::chief
