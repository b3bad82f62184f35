#include "common/base/time_slice.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>

namespace lockstep {
namespace {

// Of the calling thread, in nanoseconds; 0 where the system knows none.
uint64_t Slice() {
  std::array<uint64_t, 6> attributes = {};  // struct sched_attr, whose runtime is the fourth
  REQUIRE(syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) == 0);
  return attributes[3];
}

TEST_CASE("a thread keeps all but the length of its slices, and others keep theirs") {
  const uint64_t of_caller = Slice();
  std::thread([] {
    const auto thread = static_cast<id_t>(syscall(SYS_gettid));
    CHECK(setpriority(PRIO_PROCESS, thread, 19) == 0);
    const uint64_t before = Slice();
    UseShortTimeSlices();
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    CHECK(getpriority(PRIO_PROCESS, thread) == 19);
    CHECK((Slice() == 500'000 || Slice() == before));
  }).join();
  CHECK(Slice() == of_caller);
}

TEST_CASE("a thread of another policy is left alone") {
  std::thread([] {
    const sched_param none = {};
    CHECK(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
    const uint64_t before = Slice();
    UseShortTimeSlices();
    CHECK(sched_getscheduler(0) == SCHED_BATCH);
    CHECK(Slice() == before);
  }).join();
}

}  // namespace
}  // namespace lockstep
