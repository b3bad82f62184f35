#include "tests/bench/peer_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace lockstep::bench {

absl::StatusOr<std::unique_ptr<PeerProcess>> PeerProcess::Start(
    const std::vector<std::string>& argv) {
  // A peer that has ended shows as an error of the write, not as a signal.
  std::signal(SIGPIPE, SIG_IGN);
  int to_peer[2];
  int from_peer[2];
  if (pipe2(to_peer, O_CLOEXEC) != 0 || pipe2(from_peer, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_peer[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_peer[1], STDOUT_FILENO);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to_peer[0]);
  close(from_peer[1]);
  if (error != 0) {
    close(to_peer[1]);
    close(from_peer[0]);
    return absl::NotFoundError(absl::StrCat(argv[0], ": ", std::strerror(error)));
  }
  return std::unique_ptr<PeerProcess>(
      new PeerProcess(argv[0], pid, fdopen(to_peer[1], "w"), fdopen(from_peer[0], "r")));
}

PeerProcess::~PeerProcess() {
  fclose(to_);
  fclose(from_);
  waitpid(pid_, nullptr, 0);
}

absl::StatusOr<std::string> PeerProcess::Ask(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  return Read();
}

absl::StatusOr<std::string> PeerProcess::Read() {
  std::string answer;
  int c;
  while ((c = std::fgetc(from_)) != EOF) {
    if (c == '\n') return answer;
    answer.push_back(static_cast<char>(c));
  }
  return absl::UnavailableError(absl::StrCat(name_, " ended without an answer"));
}

}  // namespace lockstep::bench
