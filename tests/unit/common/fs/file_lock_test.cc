#include "common/fs/file_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

TEST_CASE("a lock is one object's until it is gone, and names its holder") {
  const TemporaryFolder folder;
  const std::string path = folder.Path("LOCK");
  auto first = FileLock::TryAcquire(path, "process 4 on host \x01");
  REQUIRE(first.ok());
  CHECK(folder.Read("LOCK") == "process 4 on host \x01\n");
  const absl::Status refused = FileLock::TryAcquire(path, "process 5").status();
  CHECK(refused.code() == absl::StatusCode::kAlreadyExists);
  CHECK(refused.message() == path + ": locked by process 4 on host \\001");
  {
    const FileLock moved = *std::move(first);
    CHECK(absl::IsAlreadyExists(FileLock::TryAcquire(path, "process 5").status()));
  }
  CHECK(FileLock::TryAcquire(path, "6").ok());
  CHECK(folder.Read("LOCK") == "6\n");
}

TEST_CASE("the lock of a process that was killed is free") {
  const TemporaryFolder folder;
  const std::string path = folder.Path("LOCK");
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::TryAcquire(path, "the child");
    static_cast<void>(!::write(ready[1], lock.ok() ? "y" : "n", 1));
    while (true) ::pause();
  }
  char got = 0;
  REQUIRE(::read(ready[0], &got, 1) == 1);
  CHECK(got == 'y');
  CHECK(absl::StrContains(FileLock::TryAcquire(path, "").status().message(), "the child"));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(FileLock::TryAcquire(path, "").ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("what cannot be locked is an error of an output, and never waited for") {
  const TemporaryFolder folder;
  CHECK(ExitCodeFor(FileLock::TryAcquire(folder.Path("no/LOCK"), "").status()) ==
        ExitCode::kCannotCreate);
  REQUIRE(::symlink("target", folder.Path("link").c_str()) == 0);
  CHECK_FALSE(FileLock::TryAcquire(folder.Path("link"), "").ok());
  CHECK_FALSE(FileLock::TryAcquire(folder.path(), "").ok());
}

}  // namespace
}  // namespace lockstep
