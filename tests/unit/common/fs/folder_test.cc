#include "common/fs/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/fs/path.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

TEST_CASE("missing folders are made at every level and making them again is no error") {
  const TemporaryFolder folder;
  REQUIRE(MakeFolders(folder.Path("a/b//c/")).ok());
  CHECK(IsFolder(folder.Path("a/b/c")));
  CHECK(MakeFolders(folder.Path("a/b/c")).ok());
  CHECK(MakeFolders("/").ok());
}

TEST_CASE("a file in the place of a folder is named") {
  const TemporaryFolder folder;
  folder.Write("file", "x");
  const absl::Status same = MakeFolders(folder.Path("file"));
  CHECK(same.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(same.message(), folder.Path("file")));
  CHECK(ExitCodeFor(same) == ExitCode::kCannotCreate);
  CHECK(MakeFolders(folder.Path("file/below")).code() == absl::StatusCode::kFailedPrecondition);
  CHECK_FALSE(MakeFolders("").ok());
}

TEST_CASE("a listing is sorted and complete") {
  const TemporaryFolder folder;
  for (const char* name : {"b", "a", ".hidden", "c/d"}) folder.Write(name, "");
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{".hidden", "a", "b", "c"});
  CHECK(ListFolder(folder.Path("no")).status().code() == absl::StatusCode::kNotFound);
  CHECK_FALSE(ListFolder(folder.Path("a")).ok());
}

TEST_CASE("a tree is removed with everything below it and nothing beside it") {
  const TemporaryFolder folder;
  folder.Write("t/a/b/c", "x");
  folder.Write("t/d", "x");
  folder.Write("u/e", "x");
  REQUIRE(RemoveTree(folder.path(), "t").ok());
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"u"});
  CHECK(RemoveTree(folder.path(), "t").ok());
  CHECK(RemoveTree(folder.Path("no"), "t").ok());
  REQUIRE(RemoveTree(folder.Path("u"), "e").ok());
  CHECK(ListFolder(folder.Path("u"))->empty());
}

TEST_CASE("a removal ends with the check that refuses, before anything more goes") {
  const TemporaryFolder folder;
  for (const char* name : {"t/a", "t/b", "t/c"}) folder.Write(name, "x");
  int asked = 0;
  const auto check = [&asked] {
    return ++asked <= 2 ? absl::OkStatus() : absl::AbortedError("the command is over");
  };
  CHECK(RemoveTree(folder.path(), "t", check) == absl::AbortedError("the command is over"));
  CHECK(ListFolder(folder.Path("t"))->size() == 2);
}

TEST_CASE("removing a tree never follows a symbolic link") {
  const TemporaryFolder folder;
  folder.Write("outside/precious", "x");
  folder.Write("root/t/a", "x");
  REQUIRE(::symlink("../../outside", folder.Path("root/t/link").c_str()) == 0);
  REQUIRE(::symlink("../outside", folder.Path("root/top").c_str()) == 0);
  REQUIRE(RemoveTree(folder.Path("root"), "t").ok());
  REQUIRE(RemoveTree(folder.Path("root"), "top").ok());
  CHECK(folder.Read("outside/precious") == "x");
  CHECK(ListFolder(folder.Path("root"))->empty());
}

TEST_CASE("only an entry of the root can be removed") {
  const TemporaryFolder folder;
  folder.Write("root/a", "x");
  folder.Write("b", "x");
  for (const char* name : {"", ".", "..", "../b", "a/", "/", "/etc/hosts"}) {
    CAPTURE(name);
    CHECK(RemoveTree(folder.Path("root"), name).code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(folder.Read("b") == "x");
  CHECK(folder.Read("root/a") == "x");
}

TEST_CASE("paths are joined and taken apart as the shell would") {
  CHECK(JoinPath("a", "b") == "a/b");
  CHECK(JoinPath("a/", "b") == "a/b");
  CHECK(JoinPath("a", "/b") == "/b");
  CHECK(JoinPath("", "b") == "b");
  CHECK(JoinPath("a", "") == "a");
  struct Row {
    const char* path;
    const char* folder;
    const char* name;
  };
  const Row rows[] = {{"a", ".", "a"},   {"a/b", "a", "b"},  {"/a", "/", "a"},
                      {"/", "/", ""},    {"a/b/", "a", "b"}, {"", ".", ""},
                      {"//a", "/", "a"}, {"a//b", "a", "b"}, {"../x", "..", "x"}};
  for (const Row& row : rows) {
    CAPTURE(row.path);
    CHECK(FolderOf(row.path) == row.folder);
    CHECK(NameOf(row.path) == row.name);
  }
}

}  // namespace
}  // namespace lockstep
