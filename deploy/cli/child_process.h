// A program started by the launcher, with a log file for its output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct Command {
  std::string name;                      // "worker 1": for messages
  std::vector<std::string> arguments;    // the program's path first
  std::vector<std::string> environment;  // "NAME=value", added to the launcher's own
  std::string log_path;                  // stdout and stderr; an earlier log is replaced
  bool continues_log = false;            // what is there stays in place of that

  // As one line that a shell understands.
  std::string ToShell() const;
};

// Starts the program in a process group of its own (its id is the pid), with no terminal to read
// from and without TF_CONFIG, which would contradict its flags. The kernel kills it when the
// calling thread ends, however that happens: call from a thread that outlives it. NOT_FOUND when
// the program cannot be started; FAILED_PRECONDITION where the log's path is no earlier log but a
// link or a folder; otherwise errors of the log file as common/fs/fs_error.h says.
absl::StatusOr<pid_t> Start(const Command& command);

// Starts the program and waits for its end. An error unless it exits with 0, naming the log.
absl::Status RunToEnd(const Command& command);

// How a process ended, for people: "exit code 65 (corrupt data set, model or checkpoint)",
// "signal 9 (Killed)". `wait_status` is from waitpid.
std::string DescribeEnd(int wait_status);

// The process's exit code, or 128 + signal, as a shell reports it.
int ExitCodeOf(int wait_status);

}  // namespace lockstep::deploy
