#include "common/base/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep {

void OpenStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is this one: those below it are open.
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", O_RDWR);
  }
}

void IgnoreBrokenPipes() { signal(SIGPIPE, SIG_IGN); }

absl::Status FlushOutput() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return absl::OkStatus();
  return WithExitCode(
      absl::DataLossError(absl::StrCat("stdout cannot be written",
                                       errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno)),
                                       ". Remedy: free space there, or redirect it elsewhere")),
      ExitCode::kIoError);
}

}  // namespace lockstep
