#include "common/base/available_memory.h"

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

constexpr uint64_t kMiB = 1 << 20;

std::optional<uint64_t> AvailableIn(const TemporaryFolder& root) {
  return AvailableMemory(root.Path(""));
}

// A machine with 1,000 MiB available.
void WriteMachine(const TemporaryFolder& root) {
  root.Write("proc/meminfo",
             "MemTotal:       99999999 kB\nMemFree:  1 kB\nMemAvailable:    1024000 kB\n");
}

TEST_CASE("available memory of a machine without control groups is what it says") {
  const TemporaryFolder root;
  CHECK_FALSE(AvailableIn(root).has_value());
  WriteMachine(root);
  CHECK(AvailableIn(root) == 1000 * kMiB);
  CHECK(AvailableMemory() > 0);
}

TEST_CASE("available memory is what the group's limit leaves, where that is less") {
  const TemporaryFolder root;
  WriteMachine(root);
  root.Write("proc/self/cgroup", "0::/slice/job\n");
  root.Write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  CHECK(AvailableIn(root) == 1000 * kMiB);
  root.Write("sys/fs/cgroup/slice/job/memory.max", "104857600\n");
  CHECK(AvailableIn(root) == 100 * kMiB);
  root.Write("sys/fs/cgroup/slice/job/memory.current", "62914560\n");
  CHECK(AvailableIn(root) == 40 * kMiB);
  // Pages of files make room; those of shared memory (shmem) do not.
  root.Write("sys/fs/cgroup/slice/job/memory.stat",
             "anon 1048576\nfile 52428800\nshmem 31457280\ninactive_file 10485760\nactive_file "
             "5242880\n");
  CHECK(AvailableIn(root) == 55 * kMiB);
  root.Write("sys/fs/cgroup/slice/job/memory.high", "73400320\n");
  CHECK(AvailableIn(root) == 25 * kMiB);
  root.Write("sys/fs/cgroup/slice/job/memory.max", "9999999999999\n");
  root.Write("sys/fs/cgroup/slice/job/memory.high", "max\n");
  CHECK(AvailableIn(root) == 1000 * kMiB);
}

TEST_CASE("available memory is the least along the path of nested groups") {
  const TemporaryFolder root;
  WriteMachine(root);
  root.Write("proc/self/cgroup", "0::/a/b/c\n");
  root.Write("sys/fs/cgroup/a/b/c/memory.max", "209715200\n");
  root.Write("sys/fs/cgroup/a/memory.max", "314572800\n");
  root.Write("sys/fs/cgroup/a/memory.current", "262144000\n");
  CHECK(AvailableIn(root) == 50 * kMiB);
  // In a container the group's own files lie at the root of the tree.
  root.Write("sys/fs/cgroup/memory.max", "10485760\n");
  CHECK(AvailableIn(root) == 10 * kMiB);
}

TEST_CASE("the limit of memory is that of machine and groups, whatever is in use") {
  const TemporaryFolder root;
  CHECK_FALSE(MemoryLimit(root.Path("")).has_value());
  WriteMachine(root);
  CHECK(MemoryLimit(root.Path("")) == uint64_t{99999999} * 1024);
  root.Write("proc/self/cgroup", "0::/a\n");
  root.Write("sys/fs/cgroup/a/memory.max", "209715200\n");
  root.Write("sys/fs/cgroup/a/memory.current", "104857600\n");
  CHECK(MemoryLimit(root.Path("")) == 200 * kMiB);
  CHECK(AvailableIn(root) == 100 * kMiB);
  CHECK(MemoryLimit() >= AvailableMemory());
}

TEST_CASE("a group that is over its limit leaves nothing") {
  const TemporaryFolder root;
  WriteMachine(root);
  root.Write("proc/self/cgroup", "0::/\n");
  root.Write("sys/fs/cgroup/memory.max", "1048576\n");
  root.Write("sys/fs/cgroup/memory.current", "2097152\n");
  CHECK(AvailableIn(root) == 0);
}

TEST_CASE("the first version of control groups has files of its own for memory") {
  const TemporaryFolder root;
  WriteMachine(root);
  root.Write("proc/self/cgroup", "4:cpu:/x\n3:hugetlb,memory:/job\n0::/\n");
  root.Write("sys/fs/cgroup/hugetlb,memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n");
  CHECK(AvailableIn(root) == 1000 * kMiB);
  root.Write("sys/fs/cgroup/hugetlb,memory/job/memory.limit_in_bytes", "104857600\n");
  root.Write("sys/fs/cgroup/hugetlb,memory/job/memory.usage_in_bytes", "94371840\n");
  root.Write("sys/fs/cgroup/hugetlb,memory/job/memory.stat",
             "inactive_file 1\ntotal_inactive_file 5242880\ntotal_active_file 1048576\n");
  CHECK(AvailableIn(root) == 16 * kMiB);
}

TEST_CASE("files that say nothing of memory change nothing") {
  const TemporaryFolder root;
  WriteMachine(root);
  root.Write("proc/self/cgroup", "nonsense\n0::/x\n\n7\n");
  for (const char* limit : {"", "-1\n", "x\n", "1 2\n", "99999999999999999999999\n"}) {
    CAPTURE(limit);
    root.Write("sys/fs/cgroup/x/memory.max", limit);
    CHECK(AvailableIn(root) == 1000 * kMiB);
  }
  root.Write("proc/meminfo", "MemAvailable: many kB\n");
  CHECK_FALSE(AvailableIn(root).has_value());
}

}  // namespace
}  // namespace lockstep
