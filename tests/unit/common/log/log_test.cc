#include "common/log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/fs/file_descriptor.h"
#include "tests/support/log_lines.h"

namespace lockstep::log {
namespace {

// As a chief's.
std::vector<std::string> Lines(const std::function<void()>& write) {
  return test::LogLines(write, "chief");
}

TEST_CASE("a line of the log stays one line, whatever a peer has sent") {
  const std::vector<std::string> lines =
      Lines([] { Info("host x\n2026-11-22T10:00:00.000000Z I chief: checkpoint ckpt-9\x1B[2J"); });
  REQUIRE(lines.size() == 1);
  CHECK(absl::EndsWith(lines[0],
                       "I chief: host x\\n2026-11-22T10:00:00.000000Z I chief: "
                       "checkpoint ckpt-9\\x1b[2J"));
}

TEST_CASE("a line of the log has a longest length") {
  const std::vector<std::string> lines = Lines([] { Warning(std::string(1 << 20, 'x')); });
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() < 17 << 10);
  CHECK(absl::EndsWith(lines[0], "x..."));
}

TEST_CASE("a line that a full disk refuses is dropped, and the next one is written") {
  const std::vector<std::string> lines = Lines([] {
    const FileDescriptor log(dup(STDERR_FILENO));
    const FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    REQUIRE(dup2(full.get(), STDERR_FILENO) >= 0);
    Info("dropped");
    REQUIRE(dup2(log.get(), STDERR_FILENO) >= 0);
    Info("written");
  });
  REQUIRE(lines.size() == 1);
  CHECK(absl::EndsWith(lines[0], "I chief: written"));
}

TEST_CASE("a level leaves out what is below it") {
  const std::vector<std::string> lines = Lines([] {
    REQUIRE(Init("chief", "warning").ok());
    Info("a");
    Warning("b");
    REQUIRE(Init("chief", "error").ok());
    Warning("c");
    Error("d");
  });
  REQUIRE(lines.size() == 2);
  CHECK(absl::EndsWith(lines[0], "W chief: b"));
  CHECK(absl::EndsWith(lines[1], "E chief: d"));
}

TEST_CASE("a level at which nothing is logged is refused with those that there are") {
  for (const char* level : {"debug", "off", "loud", ""}) {
    const absl::Status status = Init("chief", level);
    CHECK(ExitCodeFor(status) == ExitCode::kUsage);
    CHECK(
        absl::StartsWith(status.message(), "--log_level: expected info, warning or error, got \""));
  }
}

}  // namespace
}  // namespace lockstep::log
