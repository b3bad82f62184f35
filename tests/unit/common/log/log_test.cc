#include "common/log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::log {
namespace {

// The lines that `write` sends to stderr.
std::vector<std::string> Lines(const std::function<void()>& write) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  const int saved = dup(STDERR_FILENO);
  REQUIRE(dup2(file, STDERR_FILENO) >= 0);
  REQUIRE(Init("chief", "info").ok());
  write();
  REQUIRE(dup2(saved, STDERR_FILENO) >= 0);
  close(saved);
  std::string text(lseek(file, 0, SEEK_END), '\0');
  REQUIRE(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(file);
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
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

}  // namespace
}  // namespace lockstep::log
