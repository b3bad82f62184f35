#include "common/base/standard_streams.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

// What `body` returns in a process of its own.
int InChild(const std::function<int()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("No file gets the number of a closed standard stream") {
  CHECK(InChild([] {
          close(STDIN_FILENO);
          close(STDERR_FILENO);
          OpenStandardStreams();
          return open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1;
        }) == 0);
}

TEST_CASE("A standard stream that is open stays as it is") {
  CHECK(InChild([] {
          int ends[2];
          if (pipe(ends) != 0) return 1;
          dup2(ends[1], STDERR_FILENO);
          OpenStandardStreams();
          char byte = 0;
          if (write(STDERR_FILENO, "x", 1) != 1 || read(ends[0], &byte, 1) != 1) return 2;
          return byte == 'x' ? 0 : 3;
        }) == 0);
}

TEST_CASE("Output that a full disk refuses is an error with exit code 74") {
  CHECK(InChild([] {
          if (std::freopen("/dev/full", "w", stdout) == nullptr) return 1;
          std::fputs("prediction\n", stdout);
          const absl::Status status = FlushOutput();
          if (!absl::StrContains(status.message(), "No space left on device")) return 2;
          return static_cast<int>(ExitCodeFor(status));
        }) == static_cast<int>(ExitCode::kIoError));
}

TEST_CASE("Output that was written is no error") { CHECK(FlushOutput().ok()); }

}  // namespace
}  // namespace lockstep
