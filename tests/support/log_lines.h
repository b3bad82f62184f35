// LogLines captures the lines that a test's code writes to the log.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

// Returns the lines that `write` sends to stderr. Log lines name `process`. One call at a time in a
// process. Lines of other threads meanwhile are among them.
inline std::vector<std::string> LogLines(const std::function<void()>& write,
                                         absl::string_view process = "test") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  const int saved = dup(STDERR_FILENO);
  REQUIRE(dup2(file, STDERR_FILENO) >= 0);
  REQUIRE(log::Init(process, "info").ok());
  write();
  REQUIRE(dup2(saved, STDERR_FILENO) >= 0);
  close(saved);
  std::string text(lseek(file, 0, SEEK_END), '\0');
  REQUIRE(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(file);
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

}  // namespace lockstep::test
