#include "tests/support/wait.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"

namespace lockstep::test {
namespace {

// Returns when one of them is readable, or at the deadline. Descriptors that are not valid are left
// out.
void Poll(std::vector<pollfd> descriptors, absl::Time deadline) {
  constexpr absl::Duration kLongest = absl::Hours(1);
  while (true) {
    const absl::Duration left = std::clamp(deadline - absl::Now(), absl::ZeroDuration(), kLongest);
    const int milliseconds =
        static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
    if (poll(descriptors.data(), descriptors.size(), milliseconds) > 0) return;
    if (absl::Now() >= deadline) return;
  }
}

}  // namespace

FileDescriptor OpenProcess(pid_t pid) {
  // glibc 2.36 declares pidfd_open for C alone.
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool WaitForEnd(const FileDescriptor& process, absl::Time deadline) {
  Poll({{process.get(), POLLIN, 0}}, deadline);
  pollfd now = {process.get(), POLLIN, 0};
  return poll(&now, 1, 0) > 0;
}

FolderWatch::FolderWatch(const std::string& folder)
    : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (inotify_add_watch(events_.get(), folder.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO) < 0) {
    std::perror(folder.c_str());
    std::abort();
  }
}

void FolderWatch::Wait(const FileDescriptor& process, absl::Time deadline) {
  Poll({{events_.get(), POLLIN, 0}, {process.get(), POLLIN, 0}}, deadline);
  char seen[4096];
  while (read(events_.get(), seen, sizeof seen) > 0) {
  }
}

bool WaitForText(const std::string& path, const std::string& text, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  FolderWatch watch(std::filesystem::path(path).parent_path());
  while (true) {
    const bool last_look = absl::Now() >= deadline;
    std::ifstream file(path, std::ios::binary);
    const std::string now{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (absl::StrContains(now, text)) return true;
    if (last_look) return false;
    watch.Wait(FileDescriptor(), deadline);
  }
}

}  // namespace lockstep::test
