// A chief that is stopped right after it was allowed to delete something, and goes on when another
// one commands: what that one has written stays.
#include <catch2/catch.hpp>
#include <functional>
#include <optional>

#include "common/checkpoint/checkpoint.h"
#include "common/fs/atomic_file.h"
#include "common/tensor/tensor.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

constexpr int64_t kStep = 4;

// Saves this step in two shards; a file of it and one of the root are not finished yet.
struct Saver {
  explicit Saver(const TemporaryFolder& to)
      : root(to), folder(CheckpointFolder(to.path(), kStep)) {}

  void WriteShards() {
    const Tensor value(DType::kFloat32, {2});
    const auto first = WriteShard(folder, 0, 2, {{"w", value.view()}});
    const auto second = WriteShard(folder, 1, 2, {{"b", value.view()}});
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    manifest.step = kStep;
    manifest.shards = {*first, *second};
  }
  void BeginFiles() {
    in_folder.emplace(*AtomicFile::Create(folder + "/in_folder"));
    in_root.emplace(*AtomicFile::Create(root.Path("in_root")));
  }

  const TemporaryFolder& root;
  const std::string folder;
  Manifest manifest;
  std::optional<AtomicFile> in_folder;
  std::optional<AtomicFile> in_root;
};

// Passes its `at`th question, the last one that it passes; the successor then works before the
// chief that has asked goes on.
struct Deposition {
  PublishCheck check() {
    return [this]() -> absl::Status {
      if (is_over) return absl::AbortedError("another chief commands");
      if (++questions == at) {
        is_over = true;
        successor();
      }
      return absl::OkStatus();
    };
  }

  const int at;
  const std::function<void()> successor;
  int questions = 0;
  bool is_over = false;
};

TEST_CASE("a chief that deletes a save that failed deletes nothing of the same save of another") {
  int at = 1;
  for (;; ++at) {
    CAPTURE(at);
    const TemporaryFolder root;
    Saver before(root), after(root);
    before.WriteShards();
    root.Write("ckpt-4/.lockstep-tmp-1-shard-1", "half");
    Deposition deposition{.at = at, .successor = [&after] {
                            after.WriteShards();
                            after.BeginFiles();
                          }};
    RemoveUnfinishedSave(root.path(), kStep, deposition.check()).IgnoreError();
    if (!deposition.is_over) break;
    CHECK(after.in_folder->Commit().ok());
    CHECK(after.in_root->Commit().ok());
    CHECK(CommitCheckpoint(root.path(), after.manifest, 0).ok());
    CHECK(ResolveCheckpoint(root.path()).value_or("none") == after.folder);
  }
  CHECK(at > 5);  // two shards, the temporary files, the folder and its removal
}

TEST_CASE("a chief that ends a save deletes no file that another one has begun") {
  int at = 1;
  for (;; ++at) {
    CAPTURE(at);
    const TemporaryFolder root;
    Saver before(root), after(root);
    before.WriteShards();
    for (const char* folder : {"", "ckpt-4/"}) {
      root.Write(std::string(folder) + ".lockstep-tmp-1-x", "half");
    }
    Deposition deposition{.at = at, .successor = [&after] { after.BeginFiles(); }};
    (void)CommitCheckpoint(root.path(), before.manifest, 0, nullptr, deposition.check());
    if (!deposition.is_over) break;
    CHECK(after.in_folder->Commit().ok());
    CHECK(after.in_root->Commit().ok());
  }
  CHECK(at > 4);  // the manifest, LATEST and the temporary files of both folders
}

}  // namespace
}  // namespace lockstep
