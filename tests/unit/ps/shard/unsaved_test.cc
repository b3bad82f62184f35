// Whether a shard holds state that was to be saved and is in no checkpoint.
#include <catch2/catch.hpp>
#include <string>

#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/committed.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;
using test::kCommand;
using test::PlacementOf;
using test::PlanOf;

constexpr uint64_t kEpoch = 1;  // of the harness

// One shard of one variable, at step 0.
class SavedShard {
 public:
  SavedShard() {
    REQUIRE(shard.SetView(test::ViewOf(1)).ok());
    REQUIRE(shard.CreateVariables(PlanOf(PlacementOf({{"a", {3}}}), 1, 1)).ok());
  }

  // Makes version step + 1.
  void Step(int64_t step, bool keep_slots) {
    shard.Grant({.command = kCommand,
                 .step = GlobalStep(step),
                 .learning_rate = .1f,
                 .keep_slots = keep_slots,
                 .commit = true},
                [](absl::StatusOr<ClosedStep>) {});
    REQUIRE(shard
                .Push(test::Message(test::IdentityOf(0), static_cast<uint64_t>(step) + 1, step)
                          .Whole(0, Shape({3}), std::vector<float>(3, 1))
                          .Ready())
                .ok());
  }

  ShardFile Write(int64_t version) {
    auto saved = shard.Save(kCommand, GlobalStep(version), CheckpointFolder(root.path(), version));
    INFO(saved.status().ToString());
    REQUIRE(saved.ok());
    return *std::move(saved);
  }

  void Commit(int64_t version, uint64_t epoch = kEpoch) {
    test::Committed(root.path(), version, "sgd", {Write(version)}, epoch);
  }

  bool HoldsUnsaved() {
    shard.LookForCheckpoint();
    return shard.GetView().holds_unsaved;
  }

  const TemporaryFolder root;
  Shard shard{ShardOptions{}};
};

TEST_CASE("a shard that nobody asked to save holds nothing unsaved") {
  SavedShard saved;
  CHECK_FALSE(saved.HoldsUnsaved());
  saved.Step(0, /*keep_slots=*/false);
  CHECK_FALSE(saved.HoldsUnsaved());
}

TEST_CASE("a version is unsaved until its checkpoint exists, though its file is written") {
  const bool is_kept = GENERATE(false, true);
  CAPTURE(is_kept);
  SavedShard saved;
  saved.Step(0, is_kept);
  const ShardFile file = saved.Write(1);
  CHECK(saved.HoldsUnsaved());
  // As a chief does that could not commit it.
  if (is_kept) REQUIRE(saved.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(saved.HoldsUnsaved());
  test::Committed(saved.root.path(), 1, "sgd", {file}, kEpoch);
  CHECK_FALSE(saved.HoldsUnsaved());
}

TEST_CASE("a version that is kept is saved when its checkpoint exists, also before its release") {
  SavedShard saved;
  saved.Step(0, /*keep_slots=*/true);
  saved.Commit(1);
  CHECK_FALSE(saved.HoldsUnsaved());
  CHECK_FALSE(saved.shard.GetView().kept_versions.empty());
  saved.Step(1, /*keep_slots=*/true);
  CHECK(saved.HoldsUnsaved());
}

TEST_CASE("a save that fails after one that was committed is unsaved") {
  SavedShard saved;
  saved.Commit(0);
  REQUIRE_FALSE(saved.HoldsUnsaved());
  saved.Step(0, /*keep_slots=*/false);
  CHECK_FALSE(saved.shard.Save(kCommand, GlobalStep(1), "/dev/null/ckpt-1").ok());
  CHECK(saved.HoldsUnsaved());
  saved.Commit(1);
  CHECK_FALSE(saved.HoldsUnsaved());
}

TEST_CASE("a shard that has begun the next step holds what it could not save") {
  SavedShard saved;
  saved.Step(0, /*keep_slots=*/false);
  saved.Step(1, /*keep_slots=*/false);
  CHECK_FALSE(saved.shard.Save(kCommand, GlobalStep(1), saved.root.Path("ckpt-1")).ok());
  CHECK(saved.HoldsUnsaved());
}

TEST_CASE("an earlier version that is saved again does not hide a later checkpoint") {
  SavedShard saved;
  saved.Step(0, /*keep_slots=*/true);
  saved.Step(1, /*keep_slots=*/true);
  saved.Commit(2);
  saved.Write(1);  // LATEST does not go back: there is no checkpoint of it
  CHECK_FALSE(saved.HoldsUnsaved());
}

TEST_CASE("what is not saved is of no use once the job has gone on in a later epoch") {
  SavedShard saved;
  saved.Commit(0, kEpoch + 1);
  saved.Step(0, /*keep_slots=*/false);
  saved.Write(1);
  CHECK_FALSE(saved.HoldsUnsaved());
}

TEST_CASE("so is a version that is kept for a save which nobody has asked for yet") {
  SavedShard saved;
  saved.Commit(0, kEpoch + 1);
  saved.Step(0, /*keep_slots=*/true);
  CHECK_FALSE(saved.HoldsUnsaved());
}

TEST_CASE("a checkpoint of an earlier epoch or of an earlier step saves nothing") {
  SavedShard saved;
  saved.Commit(0, kEpoch - 1);
  CHECK(saved.HoldsUnsaved());
  saved.Commit(0);
  REQUIRE_FALSE(saved.HoldsUnsaved());
  saved.Step(0, /*keep_slots=*/false);
  saved.Write(1);
  CHECK(saved.HoldsUnsaved());
  saved.root.Write("LATEST", "ckpt-9\n");  // names nothing that is there
  CHECK(saved.HoldsUnsaved());
}

}  // namespace
}  // namespace lockstep::ps
