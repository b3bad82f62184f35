#include "tests/integration/process_memory.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep::test {

void ForgetPeak(const Process& process) {
  std::ofstream(absl::StrCat("/proc/", process.pid(), "/clear_refs")) << "5";
}

ProcessMemory MemoryOf(const Process& process) {
  ProcessMemory memory;
  std::ifstream status(absl::StrCat("/proc/", process.pid(), "/status"));
  for (std::string name; status >> name; status.ignore(256, '\n')) {
    if (name == "Threads:") status >> memory.threads;
    uint64_t* const bytes = name == "VmHWM:"      ? &memory.peak
                            : name == "RssShmem:" ? &memory.shared
                            : name == "RssAnon:"  ? &memory.own
                                                  : nullptr;
    if (bytes == nullptr) continue;
    uint64_t kibibytes = 0;
    status >> kibibytes;
    *bytes = kibibytes << 10;
  }
  return memory;
}

absl::Duration CpuTimeOf(const Process& process) {
  std::ifstream stat(absl::StrCat("/proc/", process.pid(), "/stat"));
  stat.ignore(4096, ')');  // its name may have blanks
  std::string field;
  constexpr int kFieldsBeforeTimes = 11;  // proc(5): state is the third field, utime the 14th
  for (int i = 0; i < kFieldsBeforeTimes; ++i) stat >> field;
  int64_t user = 0, system = 0;
  stat >> user >> system;
  return absl::Seconds(1) * (user + system) / sysconf(_SC_CLK_TCK);
}

}  // namespace lockstep::test
