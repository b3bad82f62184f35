// Prints the wait policy under which it ends up, its name in the process list and its arguments.
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>

#include "worker/device/cpu/wait_policy.h"

int main(int argc, char** argv) {
  lockstep::worker::UsePassiveWaiting(argv);
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  std::printf("%s %s ", std::getenv("OMP_WAIT_POLICY"), name);
  for (int i = 1; i < argc; ++i) std::printf("%s|", argv[i]);
  std::printf("\n");
}
