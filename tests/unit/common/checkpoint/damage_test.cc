// A checkpoint of which one byte is another one, or that ends too early, anywhere.
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/checkpoint/example_checkpoint.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;
using test::WriteExample;

// Whether all values are those that were saved with step 2.
bool IsSound(const std::string& checkpoint) {
  const auto reader = CheckpointReader::Open(checkpoint);
  if (!reader.ok()) return false;
  const auto w = reader->Read("w"), momentum = reader->Read("w/momentum"), n = reader->Read("n");
  if (!w.ok() || !momentum.ok() || !n.ok() || n->as<int64_t>()[0] != 2) return false;
  for (size_t i = 0; i < 6; ++i) {
    const float expected = 2 + static_cast<float>(i);
    if (w->as<float>()[i] != expected || momentum->as<float>()[i] != -expected) return false;
  }
  return true;
}

// What is taken is whole, or the one before with the reason. Whether it is the one before.
bool TakesTheOneBefore(const TemporaryFolder& root, const std::string& file) {
  std::vector<std::string> warnings;
  const absl::StatusOr<std::string> taken = ResolveCheckpoint(root.path(), &warnings);
  INFO(taken.status());
  REQUIRE(taken.ok());
  if (*taken == root.Path("ckpt-2")) {
    CHECK(IsSound(*taken));
    return false;
  }
  CHECK(*taken == root.Path("ckpt-1"));
  REQUIRE_FALSE(warnings.empty());
  CHECK(absl::StrContains(warnings.back(), absl::StrCat("skipped ", root.Path("ckpt-2"), ": ")));
  CHECK(absl::StrContains(warnings.back(), root.Path(file)));
  const absl::Status alone = ResolveCheckpoint(root.Path("ckpt-2")).status();
  CHECK(absl::IsDataLoss(alone));
  return true;
}

constexpr const char* kFiles[] = {"ckpt-2/manifest.json", "ckpt-2/shard-0-of-2.safetensors",
                                  "ckpt-2/shard-1-of-2.safetensors"};

TEST_CASE("a byte that flipped anywhere in a checkpoint changes no value that is read") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  REQUIRE(WriteExample(root.path(), 1).ok());
  REQUIRE(WriteExample(root.path(), 2, 0, 2).ok());
  for (const char* file : kFiles) {
    const std::string sound = root.Read(file);
    size_t harmless = 0;
    for (size_t at = 0; at < sound.size(); ++at) {
      std::string damaged = sound;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at * 5 % 8)));
      root.Write(file, damaged);
      CAPTURE(file, at);
      harmless += !TakesTheOneBefore(root, file);
    }
    root.Write(file, sound);
    CAPTURE(file);
    // White space between the words of the manifest.
    CHECK(harmless < sound.size() / 2);
  }
}

TEST_CASE("a checkpoint of which a file ends anywhere too early is not taken") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  REQUIRE(WriteExample(root.path(), 1).ok());
  REQUIRE(WriteExample(root.path(), 2, 0, 2).ok());
  for (const char* file : kFiles) {
    const std::string sound = root.Read(file);
    for (size_t size = 0; size < sound.size(); ++size) {
      root.Write(file, sound.substr(0, size));
      CAPTURE(file, size);
      CHECK((TakesTheOneBefore(root, file) || size + 1 == sound.size()));
      root.Write(file, sound.substr(0, size) + std::string(sound.size() - size, '\0'));
      CHECK((TakesTheOneBefore(root, file) ||
             sound.substr(size).find_first_not_of('\0') == std::string::npos));
    }
    root.Write(file, sound);
  }
}

TEST_CASE("while the origin of a run without checkpoints is damaged, nothing beyond it is taken") {
  const TemporaryFolder root;
  for (const int64_t step : {500, 1000, 1500}) {
    REQUIRE(WriteExample(root.path(), step, 0, 1, {.epoch = 1}).ok());
  }
  const FolderOwner owner{.epoch = 2, .origin = {.epoch = 1, .step = 500}};
  REQUIRE(WriteOwner(root.path(), owner, nullptr).ok());
  root.Write("ckpt-500/manifest.json", "{");
  const absl::Status none = ResolveCheckpoint(root.path()).status();
  CHECK(absl::IsDataLoss(none));
  CHECK(absl::StrContains(none.message(), root.Path("ckpt-500/manifest.json")));
  CHECK(absl::StrContains(none.message(), "abandoned"));
  CHECK(ResolveCheckpoint(root.Path("ckpt-1500")).ok());
  // The one before leads to it.
  REQUIRE(WriteExample(root.Path("run"), 200, 0, 1, {.epoch = 1}).ok());
  std::filesystem::rename(root.Path("run/ckpt-200"), root.Path("ckpt-200"));
  std::vector<std::string> warnings;
  CHECK(ResolveCheckpoint(root.path(), &warnings).value_or("") == root.Path("ckpt-200"));
  REQUIRE(warnings.size() == 1);
  CHECK(absl::StrContains(warnings[0], absl::StrCat("skipped ", root.Path("ckpt-500"), ": ")));
}

TEST_CASE("a LATEST or an owner that is damaged anywhere loses no checkpoint") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  const FolderOwner owner = {.job = 0x1f, .epoch = 3, .term = 4, .chief = 9, .host = "a", .pid = 5};
  REQUIRE(WriteExample(root.path(), 1, 0, 1, {.epoch = 3}).ok());
  REQUIRE(WriteExample(root.path(), 2, 0, 2, {.epoch = 3}).ok());
  REQUIRE(WriteOwner(root.path(), owner, nullptr).ok());
  for (const char* file : {"LATEST", "OWNER.json"}) {
    const std::string sound = root.Read(file);
    for (size_t at = 0; at < sound.size(); ++at) {
      std::string damaged = sound;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      for (const std::string& contents : {damaged, sound.substr(0, at)}) {
        root.Write(file, contents);
        CAPTURE(file, at, contents);
        CHECK(ResolveCheckpoint(root.path()).value_or("") == root.Path("ckpt-2"));
        const auto read = ReadOwner(root.path());
        CHECK((!read.ok() || *read == owner));
      }
    }
    root.Write(file, sound);
  }
}

}  // namespace
}  // namespace lockstep
