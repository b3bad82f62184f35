// Whose the checkpoint folder is when chiefs come and go.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/owner.h"
#include "tests/unit/chief/job/real_shards_fixture.h"

namespace lockstep::chief {
namespace {

FolderOwner OwnerOf(const test::TemporaryFolder& root) { return **ReadOwner(root.path()); }

TEST_CASE("a chief owns the folder before it saves, and each chief after it") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  CHECK(OwnerOf(root).job == 9);
  CHECK(OwnerOf(root).term == 1);
  CHECK(OwnerOf(root).chief == 1);
  CHECK(OwnerOf(root).epoch == 1);
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 3);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  cluster.StartChief(Plan(8, root.path()));
  CHECK(OwnerOf(root).term == 2);
  CHECK(OwnerOf(root).chief == 2);
  CHECK(OwnerOf(root).epoch == 1);
  TrainTo(&cluster, 3, 6);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 6));
  CHECK(*ResolveCheckpoint(root.path()) == CheckpointFolder(root.path(), 6));
}

TEST_CASE("a chief that is stopped in the middle of a save changes nothing when it goes on") {
  const test::TemporaryFolder root;
  const std::string third = CheckpointFolder(root.path(), 3);
  std::string manifest;
  {
    Cluster cluster(Plan(8, root.path()));
    REQUIRE(cluster.Register().ready());
    TrainTo(&cluster, 0, 2);
    cluster.Push(0, 2);
    cluster.PushUnseen(1, 2);
    // Stopped when the shards have written step 3, and their answers are on the way.
    ManualExecutor* const stopped = cluster.executor.get();
    while (!std::filesystem::exists(third + "/shard-1-of-2.safetensors")) {
      REQUIRE(stopped->RunNext());
    }
    cluster.StartChief(Plan(8, root.path()));
    cluster.AwaitCheckpoint(third);
    TrainTo(&cluster, 3, 6);
    cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 6));
    manifest = root.Read("ckpt-3/manifest.json");
    REQUIRE_FALSE(cluster.ended.has_value());
    stopped->Run();
    REQUIRE(cluster.ended.has_value());
    CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kFenced);
  }
  // The disk has been waited for.
  CHECK(root.Read("LATEST") == "ckpt-6\n");
  CHECK(root.Read("ckpt-3/manifest.json") == manifest);
  CHECK(ResolveCheckpoint(third).ok());
  CHECK(OwnerOf(root).chief == 2);
}

TEST_CASE("a job that begins in the folder of another one that lives is refused with its name") {
  const test::TemporaryFolder root;
  FolderClaim other(root.path());
  const FolderOwner owner{.job = 7, .epoch = 1, .term = 1, .chief = 70, .host = "there", .pid = 41};
  REQUIRE(other.Enter(owner).ok());
  REQUIRE(other.Take(owner).ok());
  JobPlan plan = Plan(8, root.path());
  plan.epoch = Epoch(2);
  Cluster cluster(plan);
  cluster.Pass(absl::Seconds(5));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kBadConfiguration);
  CHECK(absl::StrContains(cluster.ended->message(),
                          "locked by process 41 on host there, the chief of job 7; "));
  CHECK(absl::StrContains(cluster.ended->message(), "Remedy: "));
  for (const auto& shard : cluster.shards) CHECK(shard->GetView().job == 0);
  CHECK(OwnerOf(root) == owner);
}

TEST_CASE("a folder that cannot be locked is told to the user, with what to do") {
  const test::TemporaryFolder root;
  root.Write("LOCK/in", "the way");
  Cluster cluster(Plan(8, root.path()));
  const ProcessStatus status = cluster.Status();
  REQUIRE(status.job().warnings_size() == 1);
  const std::string& text = status.job().warnings(0).text();
  INFO(text);
  CHECK(text.starts_with(root.Path("LOCK") + ": cannot open: "));
  CHECK(absl::StrContains(text, "; tried again with the first save. Remedy: "));
}

TEST_CASE("a shard does not write into a folder that another job owns") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  REQUIRE(WriteOwner(root.path(), {.job = 7, .epoch = 2, .chief = 70}, nullptr).ok());
  TrainTo(&cluster, 0, 3);
  cluster.Pass(absl::Seconds(5));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kFenced);
  CHECK(std::filesystem::is_empty(CheckpointFolder(root.path(), 3)));
  CHECK(OwnerOf(root).job == 7);
}

TEST_CASE("the checkpoints of a history name where it began, whoever saves them") {
  const test::TemporaryFolder root;
  JobPlan plan = Plan(8, root.path());
  plan.epoch = Epoch(4);
  plan.origin = {.epoch = 3, .step = 0};
  Cluster cluster(plan);
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  // The next chief may have been told to resume, and knows of other checkpoints.
  plan.origin = {.epoch = 2, .step = 900};
  cluster.StartChief(plan);
  TrainTo(&cluster, 2, 3);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  const Manifest manifest = *ReadManifest(CheckpointFolder(root.path(), 3));
  CHECK(manifest.epoch == 4);
  CHECK(manifest.origin == CheckpointOrigin{.epoch = 3, .step = 0});
}

}  // namespace
}  // namespace lockstep::chief
