#include "common/checkpoint/latest.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

TEST_CASE("LATEST tells a step, that it is not there, or that it names nothing") {
  const test::TemporaryFolder root;
  CHECK(absl::IsNotFound(ReadLatest(root.path()).status()));
  root.Write("LATEST", "ckpt-1500\n");
  CHECK(*ReadLatest(root.path()) == 1500);
  for (const std::string& wrong :
       {std::string(), std::string("ckpt-\n"), std::string("ckpt-007"), std::string("../x"),
        std::string("\x1b[2J"), std::string(10'000, 'x')}) {
    CAPTURE(wrong);
    root.Write("LATEST", wrong);
    const absl::Status status = ReadLatest(root.path()).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), root.Path("LATEST") + ": "));
    CHECK_FALSE(absl::StrContains(status.message(), "\x1b"));
  }
  std::filesystem::remove(root.Path("LATEST"));
  std::filesystem::create_symlink("LATEST", root.Path("LATEST"));  // a loop
  const absl::Status unread = ReadLatest(root.path()).status();
  CHECK_FALSE((unread.ok() || absl::IsNotFound(unread) || absl::IsInvalidArgument(unread)));
}

}  // namespace
}  // namespace lockstep
