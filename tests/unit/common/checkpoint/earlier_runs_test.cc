#include "common/checkpoint/earlier_runs.h"

#include <catch2/catch.hpp>

#include "common/checkpoint/checkpoint.h"
#include "common/fs/folder.h"
#include "common/tensor/tensor.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

void WriteCheckpoint(const std::string& root, int64_t step) {
  const float value = static_cast<float>(step);
  const TensorView view{DType::kFloat32, Shape(), &value};
  const absl::StatusOr<ShardFile> shard =
      WriteShard(CheckpointFolder(root, step), 0, 1, {{"v", view}});
  REQUIRE(shard.ok());
  REQUIRE(CommitCheckpoint(root, {.step = step, .shards = {*shard}}, 0).ok());
}

TEST_CASE("a checkpoint of an earlier run is found: the one of LATEST, or the highest") {
  const test::TemporaryFolder folder;
  const std::string root = folder.Path("checkpoints");
  CHECK(*FindCheckpoint(root) == "");
  REQUIRE(MakeFolders(CheckpointFolder(root, 700)).ok());  // an unfinished save
  CHECK(*FindCheckpoint(root) == "");
  WriteCheckpoint(root, 500);
  WriteCheckpoint(root, 300);
  CHECK(*FindCheckpoint(root) == CheckpointFolder(root, 300));
  folder.Write("checkpoints/LATEST", "ckpt-700\n");
  CHECK(*FindCheckpoint(root) == CheckpointFolder(root, 500));
  folder.Write("checkpoints/LATEST", "nonsense");
  CHECK(*FindCheckpoint(root) == CheckpointFolder(root, 500));
}

TEST_CASE("checkpoints that are set aside are none of the new run's, and can be restored") {
  const test::TemporaryFolder folder;
  const std::string root = folder.Path("checkpoints");
  WriteCheckpoint(root, 500);
  WriteCheckpoint(root, 300);
  REQUIRE(MakeFolders(CheckpointFolder(root, 700)).ok());
  folder.Write("checkpoints/notes.txt", "mine");
  const absl::StatusOr<std::string> aside = SetAsideCheckpoints(root);
  REQUIRE(aside.ok());
  CHECK(*aside == folder.Path("checkpoints/earlier-1"));
  CHECK(*FindCheckpoint(root) == "");
  CHECK(absl::IsNotFound(ResolveCheckpoint(root).status()));
  CHECK(*ResolveCheckpoint(*aside) == CheckpointFolder(*aside, 300));
  CHECK(*ListFolder(root) == std::vector<std::string>{"earlier-1", "notes.txt"});

  WriteCheckpoint(root, 100);
  CHECK(*SetAsideCheckpoints(root) == folder.Path("checkpoints/earlier-2"));
  CHECK(*ResolveCheckpoint(folder.Path("checkpoints/earlier-2")) ==
        folder.Path("checkpoints/earlier-2/ckpt-100"));
}

}  // namespace
}  // namespace lockstep
