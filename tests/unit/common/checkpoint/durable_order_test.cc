// In which order a deleted checkpoint leaves the disk. The system calls are recorded on their way.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/fs/path.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/checkpoint/example_checkpoint.h"

namespace {

std::vector<std::string>* recorded = nullptr;

std::string PathOf(int descriptor) {
  std::error_code ignored;
  return std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", descriptor), ignored);
}

}  // namespace

// In place of the C library's.
extern "C" int unlinkat(int folder, const char* name, int flags) noexcept {
  if (recorded != nullptr) recorded->push_back(absl::StrCat("remove ", name));
  return static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
}
extern "C" int fsync(int descriptor) {
  if (recorded != nullptr) {
    recorded->push_back(absl::StrCat("sync ", lockstep::NameOf(PathOf(descriptor))));
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace lockstep {
namespace {

TEST_CASE("a deleted checkpoint's manifest is gone from the disk before its first shard goes") {
  const test::TemporaryFolder root;
  REQUIRE(test::WriteExample(root.path(), 1).ok());
  std::vector<std::string> calls;
  recorded = &calls;
  const bool saved = test::WriteExample(root.path(), 2, 1).ok();
  recorded = nullptr;
  REQUIRE(saved);
  const auto manifest = std::ranges::find(calls, "remove manifest.json");
  const auto synced = std::find(manifest, calls.end(), "sync ckpt-1");
  const auto shard = std::ranges::find(calls, "remove shard-0-of-2.safetensors");
  REQUIRE(manifest != calls.end());
  REQUIRE(shard != calls.end());
  CHECK(synced < shard);
}

}  // namespace
}  // namespace lockstep
