// A program under test, run as a real process. It is killed, with all that it started, when the
// object goes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

// The path of a binary that the test names under `data`: Binary("ps/ps").
std::string Binary(const std::string& path);

class Process {
 public:
  // `arguments`: the program's path first. `environment`: "NAME=value", added. Aborts when it
  // cannot be started.
  explicit Process(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  // To the process alone.
  void Signal(int signal) const;

  // Its exit code, or 128 + signal; nothing when it still runs after `timeout`.
  std::optional<int> Wait(absl::Duration timeout);
  bool running() { return !Wait(absl::ZeroDuration()).has_value(); }

  // Stdout and stderr so far.
  std::string Output() const { return folder_.Read("output"); }
  // The same without its first `offset` bytes.
  std::string OutputFrom(size_t offset) const { return folder_.ReadFrom("output", offset); }
  // Whether `text` has appeared before `timeout`, or before its end.
  bool WaitForOutput(const std::string& text, absl::Duration timeout);

 private:
  TemporaryFolder folder_;
  pid_t pid_ = 0;
  FileDescriptor end_;  // readable once it has ended
  std::optional<int> exit_code_;
};

struct Ended {
  int exit_code = -1;  // -1: killed after `timeout`
  std::string output;
};

// Runs a program to its end.
Ended RunToEnd(std::vector<std::string> arguments, absl::Duration timeout,
               std::vector<std::string> environment = {});

// Processes that have `text` in their command line, but for this one.
std::vector<pid_t> ProcessesWith(const std::string& text);
// Whether the last of them ends before `timeout`.
bool WaitForNoneWith(const std::string& text, absl::Duration timeout);

}  // namespace lockstep::test
