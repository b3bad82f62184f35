#include "tests/support/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "deploy/cli/child_process.h"
#include "tests/support/wait.h"

namespace lockstep::test {

std::string Binary(const std::string& path) {
  return std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") + "/" + path;
}

Process::Process(std::vector<std::string> arguments, std::vector<std::string> environment) {
  deploy::Command command = {.name = "the program under test",
                             .arguments = std::move(arguments),
                             .environment = std::move(environment),
                             .log_path = folder_.Path("output")};
  const absl::StatusOr<pid_t> pid = deploy::Start(command);
  if (!pid.ok()) {
    std::fprintf(stderr, "%s\n", pid.status().ToString().c_str());
    std::abort();
  }
  pid_ = *pid;
  end_ = OpenProcess(pid_);
  if (!end_.valid()) std::abort();
}

Process::~Process() {
  kill(-pid_, SIGKILL);
  Wait(absl::InfiniteDuration());
}

void Process::Signal(int signal) const {
  if (!exit_code_) kill(pid_, signal);
}

std::optional<int> Process::Wait(absl::Duration timeout) {
  if (exit_code_ || !WaitForEnd(end_, absl::Now() + timeout)) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, 0) == pid_) exit_code_ = deploy::ExitCodeOf(status);
  return exit_code_;
}

bool Process::WaitForOutput(const std::string& text, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  FolderWatch watch(folder_.path());
  while (true) {
    const bool last_look = !running() || absl::Now() >= deadline;
    if (absl::StrContains(Output(), text)) return true;
    if (last_look) return false;
    watch.Wait(end_, deadline);
  }
}

Ended RunToEnd(std::vector<std::string> arguments, absl::Duration timeout,
               std::vector<std::string> environment) {
  Process process(std::move(arguments), std::move(environment));
  const std::optional<int> code = process.Wait(timeout);
  return {code.value_or(-1), process.Output()};
}

std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    std::ostringstream line;
    line << file.rdbuf();  // nothing, without an exception, of a process that has just ended
    if (absl::StrContains(line.str(), text)) found.push_back(pid);
  }
  return found;
}

bool WaitForNoneWith(const std::string& text, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const std::vector<pid_t> pids = ProcessesWith(text);
    if (pids.empty()) return true;
    if (absl::Now() >= deadline) return false;
    for (const pid_t pid : pids) {
      const FileDescriptor process = OpenProcess(pid);
      if (process.valid() && !WaitForEnd(process, deadline)) return false;
    }
  }
}

}  // namespace lockstep::test
