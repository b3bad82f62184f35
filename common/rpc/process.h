// What every daemon does around its work: one id per start, signals turned into an orderly stop,
// allocator set for large messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/exit_code.h"
#include "common/base/ids.h"

namespace lockstep {

// Call first thing in main, before any thread: keeps freed memory for the next message instead of
// giving it back to the kernel (page faults halve the transfer rate), ignores SIGPIPE, and blocks
// SIGINT and SIGTERM in all threads for SignalWatcher.
void PrepareProcess();

// A random id of this process start; never 0.
Incarnation MakeIncarnation();

std::string HostName();

// Waits for SIGINT and SIGTERM on a thread of its own. Thread-safe.
class SignalWatcher {
 public:
  // `on_signal` is called once, on the watcher's thread, with the exit code that the signal means.
  // A second signal ends the process at once with the code of that signal.
  explicit SignalWatcher(std::function<void(ExitCode)> on_signal);
  ~SignalWatcher();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One line on stderr, "role: message", and the exit code for it. For the end of main.
int ExitWith(const std::string& who, const absl::Status& status);

}  // namespace lockstep
