#include "common/checkpoint/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "common/fs/folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/checkpoint/example_checkpoint.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;
using test::WriteExample;

std::vector<int64_t> Steps(const TemporaryFolder& root) { return *ListCheckpoints(root.path()); }

TEST_CASE("a checkpoint's folder has one name per step") {
  CHECK(CheckpointName(120) == "ckpt-120");
  CHECK(ParseCheckpointName("ckpt-120") == 120);
  CHECK(ParseCheckpointName("ckpt-0") == 0);
  for (const char* name : {"", "ckpt-", "ckpt-01", "ckpt--1", "ckpt-+1", "ckpt-1 ", "ckpt- 1",
                           "ckpt-1x", "ckpt-99999999999999999999", "CKPT-1", "xckpt-1"}) {
    CAPTURE(name);
    CHECK_FALSE(ParseCheckpointName(name).has_value());
  }
}

TEST_CASE("a committed checkpoint has its shards, its manifest and LATEST, and nothing else") {
  const TemporaryFolder root;
  const auto folder = WriteExample(root.Path("deep/er"), 7);
  REQUIRE(folder.ok());
  CHECK(*folder == root.Path("deep/er/ckpt-7"));
  CHECK(*ListFolder(root.Path("deep/er")) == std::vector<std::string>{"LATEST", "ckpt-7"});
  CHECK(*ListFolder(*folder) == std::vector<std::string>{"manifest.json",
                                                         "shard-0-of-2.safetensors",
                                                         "shard-1-of-2.safetensors"});
  CHECK(root.Read("deep/er/LATEST") == "ckpt-7\n");
}

TEST_CASE("the newest checkpoints are kept, as many as asked for") {
  const TemporaryFolder root;
  for (const int64_t step : {1, 2, 9, 10}) REQUIRE(WriteExample(root.path(), step).ok());
  CHECK(Steps(root) == std::vector<int64_t>{10, 9, 2, 1});
  REQUIRE(WriteExample(root.path(), 11, 3).ok());
  CHECK(Steps(root) == std::vector<int64_t>{11, 10, 9});
  REQUIRE(WriteExample(root.path(), 12, 1).ok());
  CHECK(Steps(root) == std::vector<int64_t>{12});
}

TEST_CASE("unfinished checkpoints before the new one go and later ones of another run stay") {
  const TemporaryFolder root;
  root.Write("ckpt-3/shard-0-of-2.safetensors", "half");
  root.Write("ckpt-9/shard-0-of-2.safetensors", "half");
  root.Write("ckpt-x/note", "not ours");
  REQUIRE(WriteExample(root.path(), 8).ok());
  REQUIRE(WriteExample(root.path(), 5, 1, 1, {.epoch = 1}).ok());
  CHECK(Steps(root) == std::vector<int64_t>{9, 8, 5});
  CHECK(root.Read("ckpt-x/note") == "not ours");
  CHECK(root.Read("LATEST") == "ckpt-5\n");
}

TEST_CASE("shards that the manifest does not name leave its folder") {
  const TemporaryFolder root;
  root.Write("ckpt-5/shard-2-of-3.safetensors", "of an earlier attempt");
  root.Write("ckpt-5/.lockstep-tmp-0-manifest.json", "of a crash");
  root.Write("ckpt-5/README", "of a user");
  REQUIRE(WriteExample(root.path(), 5).ok());
  CHECK(*ListFolder(root.Path("ckpt-5")) == std::vector<std::string>{"README", "manifest.json",
                                                                     "shard-0-of-2.safetensors",
                                                                     "shard-1-of-2.safetensors"});
}

TEST_CASE("until a step that is saved again has its manifest, its first checkpoint is whole") {
  const TemporaryFolder root;
  const auto folder = WriteExample(root.path(), 5);
  REQUIRE(folder.ok());
  // Another history of the job: other values. Then the processes die.
  Tensor w(DType::kFloat32, {2, 3});
  const auto shard = WriteShard(*folder, 0, 2, {{"w", w.view()}});
  REQUIRE(shard.ok());
  CHECK(ResolveCheckpoint(*folder).ok());
  // Saved a third time, to the end.
  REQUIRE(WriteExample(root.path(), 5, 0, 2).ok());
  CHECK(ResolveCheckpoint(*folder).ok());
  const Manifest manifest = *ReadManifest(*folder);
  CHECK(*ListFolder(*folder) == std::vector<std::string>{"manifest.json", manifest.shards[0].file,
                                                         manifest.shards[1].file});
  CHECK(CheckpointReader::Open(*folder)->Read("w")->as<float>()[0] == 2);
}

TEST_CASE("LATEST does not go back within an epoch, and not to an earlier one") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 9, 0, 1, {.epoch = 2}).ok());
  const absl::Status back = WriteExample(root.path(), 5, 1, 1, {.epoch = 2}).status();
  CHECK(back.code() == absl::StatusCode::kAlreadyExists);
  CHECK(absl::StrContains(back.message(), "does not go back from ckpt-9 to ckpt-5"));
  for (const int64_t step : {5, 9, 12}) {
    CHECK(WriteExample(root.path(), step, 1, 1, {.epoch = 1}).status().code() ==
          absl::StatusCode::kAborted);
  }
  CHECK(root.Read("LATEST") == "ckpt-9\n");
  CHECK_FALSE(ReadManifest(root.Path("ckpt-5")).ok());
  CHECK(ReadManifest(root.Path("ckpt-9"))->epoch == 2);
  // The same step again, as after an answer that was lost.
  CHECK(WriteExample(root.path(), 9, 0, 1, {.epoch = 2}).ok());
}

TEST_CASE("a LATEST that cannot be read is not replaced, one that names nothing is") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 9, 0, 1, {.epoch = 2}).ok());
  std::filesystem::remove(root.Path("LATEST"));
  std::filesystem::create_symlink("LATEST", root.Path("LATEST"));  // a loop
  const absl::Status unread = WriteExample(root.path(), 5, 1, 1, {.epoch = 2}).status();
  CHECK_FALSE(unread.ok());
  CHECK(absl::StrContains(unread.message(), root.Path("LATEST")));
  CHECK_FALSE(ReadManifest(root.Path("ckpt-5")).ok());
  std::filesystem::remove(root.Path("LATEST"));
  root.Write("LATEST", std::string(10'000, 'x'));
  CHECK(WriteExample(root.path(), 9, 0, 1, {.epoch = 2}).ok());
  CHECK(root.Read("LATEST") == "ckpt-9\n");
}

TEST_CASE("a history that begins before LATEST sets it back, and says so") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 5, 0, 1, {.epoch = 1}).ok());
  REQUIRE(WriteExample(root.path(), 9, 0, 1, {.epoch = 1}).ok());
  Manifest manifest = *ReadManifest(root.Path("ckpt-5"));
  manifest.epoch = 2;
  std::vector<std::string> warnings;
  REQUIRE(CommitCheckpoint(root.path(), manifest, 0, &warnings).ok());
  REQUIRE(warnings.size() == 1);
  CHECK(absl::StrContains(warnings[0], "goes back from ckpt-9 to ckpt-5"));
  warnings.clear();
  REQUIRE(CommitCheckpoint(root.path(), manifest, 0, &warnings).ok());
  CHECK(warnings.empty());
}

TEST_CASE(
    "a writer that is fenced publishes nothing and deletes nothing, whenever it learns of it") {
  // Asked before the manifest, LATEST and each deletion.
  for (int allowed = 0; allowed < 12; ++allowed) {
    CAPTURE(allowed);
    const TemporaryFolder root;
    for (const int64_t step : {1, 2}) REQUIRE(WriteExample(root.path(), step).ok());
    root.Write("ckpt-3/shard-7-of-8.safetensors", "of an earlier attempt");
    int asked = 0;
    const auto saved = WriteExample(root.path(), 3, 1, 1, {}, [&] {
      return asked++ < allowed ? absl::OkStatus() : absl::AbortedError("fenced");
    });
    CHECK(saved.ok() == (allowed >= 2));
    if (allowed < 2) CHECK(saved.status() == absl::AbortedError("fenced"));
    CHECK(ReadManifest(root.Path("ckpt-3")).ok() == (allowed >= 1));
    CHECK(root.Read("LATEST") == (allowed >= 2 ? "ckpt-3\n" : "ckpt-2\n"));
    if (allowed <= 2) CHECK(ListFolder(root.Path("ckpt-3"))->size() == (allowed == 0 ? 3u : 4u));
    if (allowed <= 2) CHECK(ResolveCheckpoint(root.Path("ckpt-1")).ok());
    CHECK(ResolveCheckpoint(root.path()).ok());
    if (asked <= allowed) {  // it was never refused
      CHECK(Steps(root) == std::vector<int64_t>{3});
    }
  }
}

TEST_CASE("of those that are kept only the history that goes on counts") {
  const TemporaryFolder root;
  const Manifest first{.epoch = 1};
  const Manifest second{.epoch = 2, .origin = {.epoch = 1, .step = 2}};
  for (const int64_t step : {1, 2, 3, 5, 9}) {
    REQUIRE(WriteExample(root.path(), step, 0, 1, first).ok());
  }
  // 3, 5 and 9 are abandoned.
  REQUIRE(WriteExample(root.path(), 4, 3, 1, second).ok());
  CHECK(Steps(root) == std::vector<int64_t>{9, 5, 4, 3, 2, 1});
  REQUIRE(WriteExample(root.path(), 6, 3, 1, second).ok());
  CHECK(Steps(root) == std::vector<int64_t>{9, 6, 5, 4, 3, 2});
  REQUIRE(WriteExample(root.path(), 7, 3, 1, second).ok());
  CHECK(Steps(root) == std::vector<int64_t>{9, 7, 6, 5, 4});
}

TEST_CASE("an old checkpoint that is a symbolic link goes without what it points to") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.Path("archive"), 1).ok());
  std::filesystem::create_directory(root.Path("run"));
  REQUIRE(::symlink("../archive/ckpt-1", root.Path("run/ckpt-1").c_str()) == 0);
  REQUIRE(WriteExample(root.Path("run"), 2, 1).ok());
  CHECK(*ListCheckpoints(root.Path("run")) == std::vector<int64_t>{2});
  CHECK(ResolveCheckpoint(root.Path("archive")).ok());
}

TEST_CASE("a folder with the name of a checkpoint keeps what no save has written") {
  const TemporaryFolder root;
  root.Write("ckpt-1/model.pt", "another program's");
  root.Write("ckpt-1/shard-0-of-2.safetensors", "half");
  std::filesystem::create_directory(root.Path("elsewhere"));
  REQUIRE(::symlink("elsewhere", root.Path("ckpt-3").c_str()) == 0);
  REQUIRE(WriteExample(root.path(), 4, 1).ok());
  CHECK(*ListFolder(root.Path("ckpt-1")) == std::vector<std::string>{"model.pt"});
  CHECK(Steps(root) == std::vector<int64_t>{4, 3, 1});
  root.Write("ckpt-5/model.pt", "another program's");
  REQUIRE(RemoveUnfinishedSave(root.path(), 5, nullptr).ok());
  CHECK(root.Read("ckpt-5/model.pt") == "another program's");
}

TEST_CASE("a shard that is missing or of another size stops the commit") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 1).ok());
  Manifest manifest = *ReadManifest(root.Path("ckpt-1"));
  manifest.step = 2;
  const absl::Status missing = CommitCheckpoint(root.path(), manifest, 1).status();
  CHECK(missing.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(missing.message(), "Remedy"));
  root.Write("ckpt-2/shard-0-of-2.safetensors", "short");
  CHECK(CommitCheckpoint(root.path(), manifest, 1).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  CHECK(root.Read("LATEST") == "ckpt-1\n");
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-1"));
}

TEST_CASE("the newest complete checkpoint is found from its root, a given one as itself") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 5).ok());
  REQUIRE(WriteExample(root.path(), 10).ok());
  std::vector<std::string> warnings;
  CHECK(*ResolveCheckpoint(root.path(), &warnings) == root.Path("ckpt-10"));
  CHECK(*ResolveCheckpoint(root.Path("ckpt-5"), &warnings) == root.Path("ckpt-5"));
  CHECK(warnings.empty());
}

TEST_CASE("the history that goes on is resolved, whatever LATEST says or one damage hides") {
  const TemporaryFolder root;
  const Manifest first{.epoch = 1};
  const Manifest second{.epoch = 2, .origin = {.epoch = 1, .step = 500}};
  for (const int64_t step : {500, 1500}) {
    REQUIRE(WriteExample(root.path(), step, 0, 1, first).ok());
  }
  REQUIRE(WriteExample(root.path(), 1000, 0, 1, second).ok());
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-1000"));
  for (const char* latest : {"ckpt-1500\n", "ckpt-500\n", ""}) {
    root.Write("LATEST", latest);
    CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-1000"));
  }
  std::filesystem::remove(root.Path("LATEST"));
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-1000"));

  std::string bytes = root.Read("ckpt-1000/shard-0-of-2.safetensors");
  bytes.back() ^= 1;
  root.Write("ckpt-1000/shard-0-of-2.safetensors", bytes);
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-500"));
  root.Write("LATEST", "ckpt-1000\n");
  root.Write("ckpt-1000/manifest.json", "{");
  std::vector<std::string> warnings;
  CHECK(*ResolveCheckpoint(root.path(), &warnings) == root.Path("ckpt-500"));
  CHECK(warnings.size() == 1);
  // With its owner, even without LATEST.
  std::filesystem::remove(root.Path("LATEST"));
  REQUIRE(WriteOwner(root.path(), {.epoch = 2, .origin = second.origin}, nullptr).ok());
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-500"));
  // What is abandoned is no way out.
  root.Write("ckpt-500/shard-0-of-2.safetensors", "");
  const absl::Status none = ResolveCheckpoint(root.path()).status();
  CHECK(none.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(none.message(), "abandoned"));
  CHECK(ResolveCheckpoint(root.Path("ckpt-1500")).ok());
}

TEST_CASE("a run that has gone back and saved nothing yet counts, one from elsewhere does not") {
  const TemporaryFolder root;
  for (const int64_t step : {500, 1500}) {
    REQUIRE(WriteExample(root.path(), step, 0, 1, {.epoch = 1}).ok());
  }
  const auto own = [&](const FolderOwner& owner) {
    REQUIRE(WriteOwner(root.path(), owner, nullptr).ok());
    return *ResolveCheckpoint(root.path());
  };
  CHECK(own({.epoch = 2, .origin = {.epoch = 1, .step = 500}}) == root.Path("ckpt-500"));
  CHECK(own({.epoch = 2, .origin = {.epoch = 0, .step = 800}}) == root.Path("ckpt-1500"));
  CHECK(own({.epoch = 1}) == root.Path("ckpt-1500"));
  root.Write("OWNER.json", "{}");
  std::vector<std::string> warnings;
  CHECK(*ResolveCheckpoint(root.path(), &warnings) == root.Path("ckpt-1500"));
  REQUIRE(warnings.size() == 1);
  CHECK(absl::StrContains(warnings[0], "OWNER.json: job is missing. Remedy: "));
}

TEST_CASE("a LATEST of wrong content is reported and the highest step taken") {
  for (const char* content : {"", "ckpt-99\n", "../../etc\n", "ckpt-5/../ckpt-5", "\xff\xfe"}) {
    CAPTURE(content);
    const TemporaryFolder root;
    REQUIRE(WriteExample(root.path(), 5).ok());
    root.Write("LATEST", content);
    std::vector<std::string> warnings;
    CHECK(*ResolveCheckpoint(root.path(), &warnings) == root.Path("ckpt-5"));
    CHECK(warnings.size() == 1);
  }
}

TEST_CASE("a broken checkpoint is skipped with the reason and the next older one used") {
  struct Row {
    const char* damage;
    std::function<void(const TemporaryFolder&)> apply;
  };
  const Row rows[] = {
      {"no such file",
       [](const auto& root) {
         std::filesystem::remove(root.Path("ckpt-9/shard-1-of-2.safetensors"));
       }},
      {"not a safetensors file",
       [](const auto& root) {
         std::filesystem::resize_file(root.Path("ckpt-9/shard-1-of-2.safetensors"), 60);
       }},
      {"not a safetensors file",
       [](const auto& root) { root.Write("ckpt-9/shard-0-of-2.safetensors", ""); }},
      {"CRC32C",
       [](const auto& root) {
         std::string bytes = root.Read("ckpt-9/shard-0-of-2.safetensors");
         bytes.back() ^= 1;
         root.Write("ckpt-9/shard-0-of-2.safetensors", bytes);
       }},
      {"manifest.json",
       [](const auto& root) { std::filesystem::remove(root.Path("ckpt-9/manifest.json")); }},
      {"manifest.json: not JSON at byte",
       [](const auto& root) { root.Write("ckpt-9/manifest.json", ""); }},
      {"not in the manifest",
       [](const auto& root) {
         std::filesystem::copy_file(root.Path("ckpt-8/shard-0-of-2.safetensors"),
                                    root.Path("ckpt-9/shard-1-of-2.safetensors"),
                                    std::filesystem::copy_options::overwrite_existing);
       }},
      {"damaged",
       [](const auto& root) {
         std::filesystem::copy_file(root.Path("ckpt-8/shard-1-of-2.safetensors"),
                                    root.Path("ckpt-9/shard-1-of-2.safetensors"),
                                    std::filesystem::copy_options::overwrite_existing);
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.damage);
    const TemporaryFolder root;
    REQUIRE(WriteExample(root.path(), 8).ok());
    REQUIRE(WriteExample(root.path(), 9).ok());
    row.apply(root);
    std::vector<std::string> warnings;
    const auto resolved = ResolveCheckpoint(root.path(), &warnings);
    REQUIRE(resolved.ok());
    CHECK(*resolved == root.Path("ckpt-8"));
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::StartsWith("skipped " + root.Path("ckpt-9") + ": "));
    CHECK_THAT(warnings[0], Catch::Contains(row.damage, Catch::CaseSensitive::No) ||
                                Catch::Contains("the manifest says"));
  }
}

TEST_CASE("what is not there is NOT_FOUND and what is broken alone is DATA_LOSS") {
  const TemporaryFolder root;
  CHECK(ResolveCheckpoint(root.Path("no")).status().code() == absl::StatusCode::kNotFound);
  const absl::Status empty = ResolveCheckpoint(root.path()).status();
  CHECK(empty.code() == absl::StatusCode::kNotFound);
  CHECK(absl::StrContains(empty.message(), root.path()));
  root.Write("ckpt-1/shard-0-of-1.safetensors", "unfinished");
  CHECK(ResolveCheckpoint(root.path()).status().code() == absl::StatusCode::kNotFound);
  CHECK(ResolveCheckpoint(root.Path("ckpt-1")).status().code() == absl::StatusCode::kNotFound);
  root.Write("ckpt-2/manifest.json", "{");
  const absl::Status broken = ResolveCheckpoint(root.path()).status();
  CHECK(broken.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(broken.message(), "ckpt-2/manifest.json: not JSON at byte"));
  CHECK(ResolveCheckpoint(root.Path("ckpt-2")).status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a crash at any point of a save leaves a checkpoint that can be used") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 1).ok());
  // After the shards, before the manifest.
  REQUIRE(WriteExample(root.Path("other"), 2).ok());
  std::filesystem::create_directory(root.Path("ckpt-2"));
  for (const char* shard : {"shard-0-of-2.safetensors", "shard-1-of-2.safetensors"}) {
    std::filesystem::copy_file(root.Path(std::string("other/ckpt-2/") + shard),
                               root.Path(std::string("ckpt-2/") + shard));
    CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-1"));
  }
  // After the manifest, before LATEST: with its manifest a checkpoint exists.
  std::filesystem::copy_file(root.Path("other/ckpt-2/manifest.json"),
                             root.Path("ckpt-2/manifest.json"));
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-2"));
  CHECK(root.Read("LATEST") == "ckpt-1\n");
  // After LATEST, while the old one is being deleted: its manifest goes first.
  root.Write("LATEST", "ckpt-2\n");
  std::filesystem::remove(root.Path("ckpt-1/manifest.json"));
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-2"));
}

}  // namespace
}  // namespace lockstep
