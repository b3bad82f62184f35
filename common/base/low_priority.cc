#include "common/base/low_priority.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep {
namespace {

constexpr int kNiceness = 10;

}  // namespace

void UseLowPriority() {
  // Linux has a niceness for each thread.
  const auto thread = static_cast<id_t>(gettid());
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, thread);
  if (errno != 0 || now >= kNiceness) return;
  // Where it is refused, a step takes a little longer.
  (void)setpriority(PRIO_PROCESS, thread, kNiceness);
}

}  // namespace lockstep
