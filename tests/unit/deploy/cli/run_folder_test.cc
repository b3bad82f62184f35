#include "deploy/cli/run_folder.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>

#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

using test::TemporaryFolder;

TEST_CASE("the folder of a run has one launcher at a time") {
  const TemporaryFolder folder;
  const std::string path = folder.Path("deep/run");
  {
    const auto first = RunFolder::Claim(path);
    REQUIRE(first.ok());
    CHECK(first->path() == path);
    CHECK(std::filesystem::is_directory(path + "/logs"));
    const absl::Status second = RunFolder::Claim(path).status();
    CHECK(second.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(std::string(second.message()), Catch::StartsWith(path + ": another run") &&
                                                  Catch::Contains("Remedy") &&
                                                  Catch::Contains("--run_dir"));
  }
  CHECK(RunFolder::Claim(path).ok());
}

TEST_CASE("a folder that cannot be made has a remedy") {
  const TemporaryFolder folder;
  const absl::Status file = RunFolder::Claim(folder.Write("file", "text")).status();
  CHECK_THAT(std::string(file.message()),
             Catch::StartsWith(folder.Path("file")) && Catch::Contains("Remedy: --run_dir=DIR"));
}

TEST_CASE("launchers that start in the same second get folders of their own") {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto first = RunFolder::ClaimNew("digits"), second = RunFolder::ClaimNew("digits"),
             unnamed = RunFolder::ClaimNew("../x");
  std::filesystem::current_path(before);
  REQUIRE((first.ok() && second.ok() && unnamed.ok()));
  CHECK(first->path() != second->path());
  CHECK_THAT(second->path(), Catch::StartsWith(folder.Path("runs/digits-")));
  CHECK_THAT(unnamed->path(), Catch::StartsWith(folder.Path("runs/job-")));
}

TEST_CASE("the logs of an earlier run go, and nothing else") {
  const TemporaryFolder folder;
  for (const char* file :
       {"logs/chief.log", "logs/worker-3.log", "logs/notes.txt", "cluster.json"}) {
    folder.Write(file, "text");
  }
  std::filesystem::create_symlink(folder.Path("cluster.json"), folder.Path("logs/link.log"));
  std::filesystem::create_directory(folder.Path("logs/folder.log"));
  REQUIRE(RemoveOldLogs(folder.path()).ok());
  CHECK_FALSE(std::filesystem::exists(folder.Path("logs/chief.log")));
  CHECK_FALSE(std::filesystem::exists(folder.Path("logs/worker-3.log")));
  CHECK(folder.Read("logs/notes.txt") == "text");
  CHECK(folder.Read("logs/link.log") == "text");
  CHECK(std::filesystem::exists(folder.Path("logs/folder.log")));
}

}  // namespace
}  // namespace lockstep::deploy
