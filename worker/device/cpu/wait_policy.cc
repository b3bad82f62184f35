#include "worker/device/cpu/wait_policy.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

namespace lockstep::worker {

void UsePassiveWaiting(char** argv) {
  constexpr char kVariable[] = "OMP_WAIT_POLICY";
  if (getenv(kVariable) != nullptr) return;
  // By its own name, not as /proc/self/exe: that is what the process list would show.
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return;
  path[length] = '\0';
  setenv(kVariable, "passive", /*overwrite=*/1);
  execv(path, argv);
}

}  // namespace lockstep::worker
