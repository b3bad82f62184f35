#include "common/base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

int CpusOf(const TemporaryFolder& root) { return UsableCpus(root.Path("")); }

TEST_CASE("without control groups there are as many CPUs as the affinity leaves") {
  const TemporaryFolder nothing;
  const int all = CpusOf(nothing);
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(all == CPU_COUNT(&before));

  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(CpusOf(nothing) == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("the quota of the group, or of one around it, leaves fewer") {
  const TemporaryFolder root;
  root.Write("proc/self/cgroup", "0::/slice/job\n");
  root.Write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  const int all = CpusOf(root);
  root.Write("sys/fs/cgroup/slice/cpu.max", "50000 100000\n");
  CHECK(CpusOf(root) == 1);
  root.Write("sys/fs/cgroup/slice/cpu.max", "100000000 100000\n");
  CHECK(CpusOf(root) == all);
  root.Write("sys/fs/cgroup/slice/job/cpu.max", "100000 100000\n");
  CHECK(CpusOf(root) == 1);
}

TEST_CASE("a quota of a part of a CPU counts as a whole one") {
  const TemporaryFolder root;
  root.Write("proc/self/cgroup", "0::/\n");
  root.Write("sys/fs/cgroup/cpu.max", "1 100000\n");
  CHECK(CpusOf(root) == 1);
  root.Write("sys/fs/cgroup/cpu.max", "100001 100000\n");
  CHECK(CpusOf(root) == std::min(2, CpusOf(TemporaryFolder())));
}

TEST_CASE("the first version of control groups has the quota in files of its own") {
  const TemporaryFolder root;
  root.Write("proc/self/cgroup", "4:memory:/a\n3:cpuset:/a\n2:cpu,cpuacct:/a\n0::/\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  root.Write("sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "100000\n");
  root.Write("sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000\n");
  CHECK(CpusOf(root) == CpusOf(TemporaryFolder()));
  // In a container the group's files may lie at the root of the tree.
  root.Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "90000\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK(CpusOf(root) == 1);
}

TEST_CASE("files that say nothing of use change nothing") {
  const TemporaryFolder root;
  const int all = CpusOf(root);
  root.Write("proc/self/cgroup", "nonsense\n0::/x\n\n7\n");
  for (const char* line : {"", "max", "-5 100000", "100000 0", "a b", "1 2 3"}) {
    CAPTURE(line);
    root.Write("sys/fs/cgroup/x/cpu.max", line);
    CHECK(CpusOf(root) == all);
  }
}

}  // namespace
}  // namespace lockstep
