// Checkpoints: what a shard saves, another number of shards restores, and training goes on to the
// same bits.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/base/not_kept.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/committed.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

// Three variables over one or two shards, Adam.
class Cluster {
 public:
  Cluster(uint32_t num_shards, const std::string& restore_from, int64_t start_step) {
    CreateVariablesRequest plan = PlanOf(PlacementOf({{"a", {3}, 0, true, 1},
                                                      {"b", {2}, num_shards - 1, true, 2},
                                                      {"mean", {1}, num_shards - 1, false}},
                                                     num_shards),
                                         1, 1);
    plan.mutable_optimizer()->mutable_adam();
    plan.set_restore_from(restore_from);
    plan.set_start_step(start_step);
    for (uint32_t index = 0; index < num_shards; ++index) {
      shards_.push_back(std::make_unique<Shard>(ShardOptions{}));
      REQUIRE(shards_.back()->SetView(test::ViewOf(1, index)).ok());
      const auto created = shards_.back()->CreateVariables(plan);
      INFO(created.status().ToString());
      REQUIRE(created.ok());
    }
    shard_of_ = {0, num_shards - 1, num_shards - 1};
  }

  void Step(int64_t step, bool keep_slots = false) {
    Grant(step, keep_slots);
    for (uint32_t variable = 0; variable < 3; ++variable) Push(variable, step);
  }

  void Grant(int64_t step, bool keep_slots = false) {
    for (auto& shard : shards_) {
      shard->Grant({.command = kCommand,
                    .step = GlobalStep(step),
                    .learning_rate = .1f,
                    .keep_slots = keep_slots},
                   [](absl::StatusOr<ClosedStep>) {});
    }
  }

  void Push(uint32_t variable, int64_t step) {
    const size_t sizes[] = {3, 2, 1};
    std::vector<float> gradient;
    for (size_t i = 0; i < sizes[variable]; ++i) {
      gradient.push_back(0.1f * static_cast<float>(step + 1) - 0.3f * static_cast<float>(i));
    }
    const Shape shape({static_cast<int64_t>(sizes[variable])});
    REQUIRE(shards_[shard_of_[variable]]
                ->Push(Message(test::IdentityOf(0), static_cast<uint64_t>(step) + 1, step)
                           .Whole(variable, shape, gradient)
                           .Ready())
                .ok());
  }

  std::vector<float> Read(uint32_t variable, int64_t version) {
    test::Reply<PullResult> reply;
    shards_[shard_of_[variable]]->Pull(
        {test::IdentityOf(0), GlobalStep(version), {{VariableId(variable)}}}, reply.done());
    REQUIRE_FALSE(reply.IsParked());
    REQUIRE(reply->version == GlobalStep(version));
    return test::ValuesOf(reply->pieces[0]);
  }

  // Saves the version on every shard and commits the checkpoint, as the chief does.
  std::string Save(const std::string& root, int64_t version) {
    const std::string folder = CheckpointFolder(root, version);
    std::vector<ShardFile> all;
    for (auto& shard : shards_) {
      auto saved = shard->Save(kCommand, GlobalStep(version), folder);
      INFO(saved.status().ToString());
      REQUIRE(saved.ok());
      all.push_back(*std::move(saved));
    }
    return test::Committed(root, version, "adam", all);
  }

  Shard& shard(size_t index) { return *shards_[index]; }

 private:
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<uint32_t> shard_of_;
};

TEST_CASE("a checkpoint restores onto any number of shards and goes on to the same bits") {
  const uint32_t saved_by = GENERATE(1u, 2u);
  const uint32_t restored_by = GENERATE(1u, 2u);
  CAPTURE(saved_by, restored_by);
  const TemporaryFolder root;
  Cluster original(saved_by, "", 0);
  for (int64_t step = 0; step < 3; ++step) original.Step(step, step == 2);
  original.Step(3);  // training goes on before the checkpoint is written
  original.Step(4);
  const std::string folder = original.Save(root.path(), 3);

  const auto reader = CheckpointReader::Open(folder);
  REQUIRE(reader.ok());
  for (const char* name : {"a", "b", "mean", "a/m", "a/v", "b/m", "b/v", "optimizer/beta1_power",
                           "optimizer/beta2_power"}) {
    CAPTURE(name);
    CHECK(reader->Has(name));
  }
  CHECK_FALSE(reader->Has("mean/m"));
  CHECK(reader->Read("optimizer/beta1_power")->as<float>()[0] == .9f * .9f * .9f * .9f);

  Cluster restored(restored_by, folder, 3);
  for (int64_t step = 3; step < 5; ++step) restored.Step(step);
  for (uint32_t variable = 0; variable < 3; ++variable) {
    CHECK(restored.Read(variable, 5) == original.Read(variable, 5));
  }
}

TEST_CASE("only a version kept with its slots can be saved, and only until it is released") {
  const TemporaryFolder root;
  Cluster cluster(1, "", 0);
  cluster.Step(0);
  cluster.Grant(1);
  const auto not_kept = cluster.shard(0).Save(kCommand, GlobalStep(1), root.Path("ckpt-1"));
  CHECK(IsNotKept(not_kept.status()));
  CHECK(absl::StrContains(not_kept.status().message(), "version 1 is not kept"));
  cluster.Step(1, true);
  CHECK(cluster.shard(0).Save(kCommand, GlobalStep(2), root.Path("ckpt-2")).ok());
  CHECK(cluster.shard(0).Save(kCommand, GlobalStep(2), root.Path("ckpt-2")).ok());
  cluster.Grant(2);
  REQUIRE(cluster.shard(0).ReleaseSnapshot(kCommand, GlobalStep(2)).ok());
  CHECK_FALSE(cluster.shard(0).Save(kCommand, GlobalStep(2), root.Path("ckpt-2")).ok());
}

// As the view of a new term does, without which nobody could know that nothing changes.
Command WithdrawGrants(Shard* shard) {
  View view = test::ViewOf(1);
  view.command.set_term(2);
  REQUIRE(shard->SetView(view).ok());
  return view.command;
}

TEST_CASE("a shard saves the version that it is at, though nobody asked it to keep that") {
  const TemporaryFolder root;
  Cluster cluster(1, "", 0);
  cluster.Step(0);
  cluster.Step(1);
  cluster.Grant(2);
  const Command command = WithdrawGrants(&cluster.shard(0));
  CHECK(absl::IsFailedPrecondition(
      cluster.shard(0).Save(command, GlobalStep(1), root.Path("ckpt-1")).status()));
  auto saved = cluster.shard(0).Save(command, GlobalStep(2), root.Path("ckpt-2"));
  INFO(saved.status().ToString());
  REQUIRE(saved.ok());
  CHECK(cluster.shard(0).GetView().kept_versions.empty());
  const std::string folder = test::Committed(root.path(), 2, "adam", {*saved});
  // Training goes on here and from there to the same bits.
  Cluster restored(1, folder, 2);
  CHECK(restored.Read(0, 2) == cluster.Read(0, 2));
  restored.Step(2);
  Cluster undisturbed(1, "", 0);
  for (int64_t step = 0; step < 3; ++step) undisturbed.Step(step);
  for (uint32_t variable = 0; variable < 3; ++variable) {
    CHECK(restored.Read(variable, 3) == undisturbed.Read(variable, 3));
  }
}

TEST_CASE("a version of which a variable has been replaced is not saved") {
  const TemporaryFolder root;
  Cluster cluster(1, "", 0);
  cluster.Step(0);
  cluster.Grant(1);
  cluster.Push(0, 1);
  const Command command = WithdrawGrants(&cluster.shard(0));
  const auto saved = cluster.shard(0).Save(command, GlobalStep(1), root.Path("ckpt-1"));
  CHECK(absl::IsFailedPrecondition(saved.status()));
  CHECK(absl::StrContains(saved.status().message(), "has taken gradients"));
}

TEST_CASE("a checkpoint that does not fit is refused, naming the tensor") {
  const TemporaryFolder root;
  Cluster original(1, "", 0);
  original.Step(0, true);
  const std::string folder = original.Save(root.path(), 1);
  const auto create = [&](const Placement& placement) {
    CreateVariablesRequest plan = PlanOf(placement, 1, 1);
    plan.mutable_optimizer()->mutable_adam();
    plan.set_restore_from(folder);
    Shard shard(ShardOptions{});
    REQUIRE(shard.SetView(test::ViewOf(1)).ok());
    return shard.CreateVariables(plan).status();
  };
  CHECK(create(PlacementOf({{"a", {3}}})).ok());
  const absl::Status shape = create(PlacementOf({{"a", {4}}}));
  CHECK(absl::IsInvalidArgument(shape));
  CHECK(absl::StrContains(shape.message(), "a"));
  const absl::Status missing = create(PlacementOf({{"c", {4}}}));
  CHECK(absl::IsNotFound(missing));
  CHECK(absl::StrContains(missing.message(), "c"));
}

}  // namespace
}  // namespace lockstep::ps
