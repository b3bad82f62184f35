#include "common/fs/path_roots.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

TEST_CASE("Without roots every path is allowed") {
  CHECK(PathRoots().Check("/etc/passwd", "").ok());
  CHECK(PathRoots().Check("relative", "").ok());
}

TEST_CASE("Paths lie in a root once their links and dots are followed") {
  const test::TemporaryFolder folder;
  const std::string one = folder.Path("one"), two = folder.Path("two");
  std::filesystem::create_directories(one + "/in");
  std::filesystem::create_directories(folder.Path("one-more"));
  REQUIRE(::symlink(folder.path().c_str(), (one + "/out").c_str()) == 0);
  REQUIRE(::symlink(one.c_str(), folder.Path("link").c_str()) == 0);
  const PathRoots roots = PathRoots::Create({one, two + "/"}).value();
  for (const std::string& path :
       {one, one + "/", one + "/in", one + "/not/yet/there", two, two + "/ckpt-1",
        one + "/in/../in/x", folder.Path("link/in"), folder.Path("one-more/../one/x")}) {
    CAPTURE(path);
    CHECK(roots.Check(path, "r").ok());
  }
  for (const std::string& path :
       {std::string("/"), folder.path(), folder.Path("one-more"), folder.Path("one-more/x"),
        one + "/../x", one + "/out/x", one + "/not/../../x", std::string("one"), std::string(),
        one + std::string("/in\0/../../x", 12), two + "/../one-more"}) {
    CAPTURE(path);
    const absl::Status status = roots.Check(path, "the remedy");
    CHECK(absl::IsPermissionDenied(status));
    CHECK(absl::EndsWith(status.message(),
                         "is not below " + one + " or " + two + "/. Remedy: the remedy"));
  }
}

TEST_CASE("Nothing lies in a root that cannot be resolved") {
  const test::TemporaryFolder folder;
  const std::string loop = folder.Path("loop"), one = folder.Path("one");
  REQUIRE(::symlink(loop.c_str(), loop.c_str()) == 0);
  const PathRoots roots = PathRoots::Create({loop, one}).value();
  CHECK(absl::IsPermissionDenied(roots.Check("/etc", "")));
  CHECK(absl::IsPermissionDenied(roots.Check(loop + "/x", "")));
  CHECK(roots.Check(one + "/x", "").ok());
}

TEST_CASE("A root is an absolute path") {
  CHECK(absl::IsInvalidArgument(PathRoots::Create({"/a", "b"}).status()));
  CHECK(absl::IsInvalidArgument(PathRoots::Create({""}).status()));
}

}  // namespace
}  // namespace lockstep
