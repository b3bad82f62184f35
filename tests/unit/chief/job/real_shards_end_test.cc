// A chief that takes over after the last step of a job whose shards have copies.
#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "tests/unit/chief/job/real_shards_fixture.h"

namespace lockstep::chief {
namespace {

JobPlan PlanWithCopies(const std::string& root) {
  JobPlan plan = Plan(4, root);
  plan.job.mutable_sync()->set_ps_replicas(1);
  return plan;
}

// As if the shard had been lost, and its copy, which has kept no version, served in its place.
void DropLastVersion(Cluster* cluster, size_t shard) {
  ReleaseSnapshotRequest request;
  request.mutable_command()->set_job(9);
  request.mutable_command()->set_term(1);
  request.mutable_command()->set_chief(cluster->chiefs);
  request.set_version(4);
  absl::Status dropped = absl::UnknownError("no answer");
  cluster->controls[shard]->Call(
      kReleaseSnapshot, request,
      [&](const absl::StatusOr<ReleaseSnapshotReply>& reply) { dropped = reply.status(); });
  INFO(dropped.ToString());
  REQUIRE(dropped.ok());
}

// A shard that no release reaches.
class KeepingControl final : public PsControl {
 public:
  explicit KeepingControl(std::unique_ptr<PsControl> shard) : shard_(std::move(shard)) {}
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    if (absl::string_view(method.path) == kReleaseSnapshot.path) {
      return done(absl::UnavailableError("the release is lost"));
    }
    shard_->Start(method, request, reply, std::move(done));
  }

 private:
  const std::unique_ptr<PsControl> shard_;
};

TEST_CASE("a last version that copies have not kept is saved by the chief that takes over") {
  const size_t copies = GENERATE(1, 2);
  const test::TemporaryFolder root;
  Cluster cluster(PlanWithCopies(root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 3);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  cluster.PushUnseen(0, 3);
  cluster.PushUnseen(1, 3);
  while (cluster.job->record().global_step < GlobalStep(4)) REQUIRE(cluster.executor->RunNext());
  for (size_t shard = 0; shard < copies; ++shard) DropLastVersion(&cluster, shard);
  cluster.StartChief(PlanWithCopies(root.path()));
  cluster.Pass(absl::Milliseconds(100));
  REQUIRE_FALSE(cluster.ended.has_value());
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 4));
  CHECK(Read(CheckpointFolder(root.path(), 4), "fc/kernel", 3) == std::vector<float>(3, 6.0f));
}

TEST_CASE("a last version that is saved is not saved again because a shard keeps it") {
  const test::TemporaryFolder root;
  Cluster cluster(PlanWithCopies(root.path()));
  cluster.controls[1] = std::make_unique<KeepingControl>(std::move(cluster.controls[1]));
  cluster.StartChief(PlanWithCopies(root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 4);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 4));
  CHECK(cluster.shards[0]->GetView().kept_versions.empty());
  CHECK_FALSE(cluster.shards[1]->GetView().kept_versions.empty());
  cluster.StartChief(PlanWithCopies(root.path()));
  cluster.Pass(absl::Seconds(10));
  REQUIRE(cluster.ended.has_value());
  CHECK(cluster.ended->ok());
  CHECK(cluster.job->record().checkpoint.empty());
}

}  // namespace
}  // namespace lockstep::chief
