#include "tests/sim/death_at_disk.h"

#include "absl/strings/str_cat.h"
#include "tests/support/disk_faults.h"

namespace lockstep::sim {

bool DiesAtDisk(const DeathAtDisk& death, const std::string& folder, Trace* trace,
                absl::FunctionRef<void()> work) {
  test::SetDiskFaults(absl::StrCat(folder, ",any,,", death.operation, ",stop"));
  work();
  const bool has_died = IsDyingAtDisk();
  test::SetDiskFaults("");
  if (has_died) trace->NoteFault(Fault::kTornWrite);
  return has_died;
}

bool IsDyingAtDisk() { return !test::FailedDiskOperations().empty(); }

}  // namespace lockstep::sim
