#include "tests/integration/process_memory.h"

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
    if (name != "VmHWM:") continue;
    uint64_t kibibytes = 0;
    status >> kibibytes;
    memory.peak = kibibytes << 10;
  }
  return memory;
}

}  // namespace lockstep::test
