#include "common/fs/absolute_path.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

TEST_CASE("a path loses its dots, but not those behind a symbolic link") {
  const test::TemporaryFolder folder;
  const std::string& root = folder.path();
  folder.Write("a/b/job", "");
  std::filesystem::create_directory_symlink(folder.Path("a/b"), folder.Path("link"));
  CHECK(AbsolutePath(root + "/a/./b//job") == root + "/a/b/job");
  CHECK(AbsolutePath(root + "/a/b/../../x") == root + "/x");
  CHECK(AbsolutePath(root + "/no/such/../x") == root + "/no/x");
  CHECK(AbsolutePath("/../..") == "/");
  CHECK(AbsolutePath(root + "/link/") == root + "/link");
  for (const std::string above : {"/link/../b/job", "/link/./../b/../b/job"}) {
    CAPTURE(above);
    const std::string path = AbsolutePath(root + above);
    CHECK(path == root + "/link/../b/job");
    CHECK(std::filesystem::equivalent(path, root + "/a/b/job"));
  }
  CHECK(std::filesystem::equivalent(AbsolutePath(root + "/link/../../a"), root + "/a"));
  CHECK(AbsolutePath("x") == (std::filesystem::current_path() / "x").string());
}

}  // namespace
}  // namespace lockstep
