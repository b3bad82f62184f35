#include "deploy/cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/fs/file_descriptor.h"
#include "common/fs/fs_error.h"

namespace lockstep::deploy {
namespace {

std::string Quoted(const std::string& word) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain.data(), 0, kPlain.size()) == std::string::npos)
    return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, "TF_CONFIG=")) environment.emplace_back(*entry);
  }
  for (const std::string& entry : added) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(environment, [&](const auto& old) { return absl::StartsWith(old, name); });
    environment.push_back(entry);
  }
  return environment;
}

// A file of our own in the place of an earlier log. Nothing is written through a link, or into a
// file that others have opened, and only the user and the group may read it.
absl::StatusOr<FileDescriptor> OpenLog(const Command& command) {
  const std::string& path = command.log_path;
  struct stat info;
  const bool is_file = lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  if (is_file && !command.continues_log) unlink(path.c_str());
  const int created = is_file && command.continues_log ? 0 : O_CREAT | O_EXCL;
  FileDescriptor log(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | created, 0640));
  if (log.valid()) return log;
  if (errno != EEXIST) return WriteError(path, "create", errno);
  return WithExitCode(absl::FailedPreconditionError(
                          absl::StrCat(path, ": expected no file or an earlier log, got ",
                                       S_ISLNK(info.st_mode) ? "a symbolic link" : "something else",
                                       ". Remedy: remove it, or choose another --run_dir")),
                      ExitCode::kCannotCreate);
}

// In the child, between fork and exec: system calls only. On failure the error number goes through
// `report`, which exec closes.
[[noreturn]] void Exec(pid_t launcher, int log, int report, char* const* arguments,
                       char* const* environment) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);
  // A shell starts what runs in its background with SIGINT ignored. Until the program waits for
  // signals, an ignored one is lost.
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

const char* Meaning(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kDone:
      return "done";
    case ExitCode::kUsage:
      return "bad flag or command";
    case ExitCode::kCorruptInput:
      return "corrupt data set, model or checkpoint";
    case ExitCode::kInputNotFound:
      return "input not found";
    case ExitCode::kBug:
      return "internal error";
    case ExitCode::kCannotCreate:
      return "output cannot be created";
    case ExitCode::kIoError:
      return "I/O error";
    case ExitCode::kNotPermitted:
      return "not permitted";
    case ExitCode::kBadConfiguration:
      return "cluster or job configuration wrong";
    case ExitCode::kDiverged:
      return "a gradient is not finite";
    case ExitCode::kFenced:
      return "replaced by a newer process";
    case ExitCode::kInterrupted:
      return "interrupted";
    case ExitCode::kPeersLost:
      return "peers or port not available in time";
    case ExitCode::kTerminated:
      return "terminated";
    case ExitCode::kDeviceFailed:
      return "a GPU failed";
  }
  return nullptr;
}

}  // namespace

std::string Command::ToShell() const {
  return absl::StrJoin(environment, "",
                       [](std::string* out, const std::string& entry) {
                         const size_t equals = entry.find('=');
                         absl::StrAppend(out, entry.substr(0, equals + 1),
                                         Quoted(entry.substr(equals + 1)), " ");
                       }) +
         absl::StrJoin(arguments, " ", [](std::string* out, const std::string& word) {
           absl::StrAppend(out, Quoted(word));
         });
}

absl::StatusOr<pid_t> Start(const Command& command) {
  LOCKSTEP_ASSIGN_OR_RETURN(const FileDescriptor log, OpenLog(command));
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const FileDescriptor report_in(pipe_ends[0]);
  FileDescriptor report_out(pipe_ends[1]);

  const std::vector<std::string> environment_words = Environment(command.environment);
  const std::vector<char*> arguments = Pointers(command.arguments);
  const std::vector<char*> environment = Pointers(environment_words);
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", command.name));
  if (pid == 0) {
    Exec(launcher, log.get(), report_out.get(), arguments.data(), environment.data());
  }
  setpgid(pid, pid);  // in both processes: the group exists when this returns
  report_out.Close();
  int error = 0;
  ssize_t got;
  do {
    got = read(report_in.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return pid;
  waitpid(pid, nullptr, 0);
  return absl::NotFoundError(absl::StrCat(command.arguments[0], ": cannot start ", command.name,
                                          ": ", std::strerror(error),
                                          ". Remedy: build it with ./lockstep build"));
}

absl::Status RunToEnd(const Command& command) {
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, Start(command));
  int wait_status = 0;
  while (waitpid(pid, &wait_status, 0) < 0) {
    if (errno != EINTR)
      return absl::ErrnoToStatus(errno, absl::StrCat("waiting for ", command.name));
  }
  if (wait_status == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(command.name, ": ", DescribeEnd(wait_status), "; log: ", command.log_path));
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("signal ", signal, " (", strsignal(signal), ")");
  }
  const int code = WEXITSTATUS(wait_status);
  const char* meaning = Meaning(code);
  return absl::StrCat("exit code ", code,
                      meaning == nullptr ? "" : absl::StrCat(" (", meaning, ")"));
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace lockstep::deploy
