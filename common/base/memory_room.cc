#include "common/base/memory_room.h"

#include "absl/strings/str_cat.h"
#include "common/base/available_memory.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

// 16 MiB: less than what a process takes besides, and not worth reading files of the system for.
constexpr uint64_t kSmall = uint64_t{1} << 24;

bool IsSmall(const MemoryNeed& need) { return need.bytes.has_value() && *need.bytes <= kSmall; }

bool Fits(const MemoryNeed& need, std::optional<uint64_t> memory) {
  return need.bytes.has_value() && (!memory.has_value() || *need.bytes <= *memory);
}

}  // namespace

absl::Status CheckRoomFor(const MemoryNeed& need) {
  if (IsSmall(need)) return absl::OkStatus();
  return CheckRoomFor(need, {.available = AvailableMemory(), .limit = MemoryLimit()});
}

absl::Status CheckRoomFor(const MemoryNeed& need, const ProcessMemory& memory) {
  if (IsSmall(need) || Fits(need, memory.available)) return absl::OkStatus();
  const std::string with =
      memory.available ? absl::StrCat(", with ", *memory.available, " available to this process")
                       : "";
  return WithExitCode(
      absl::ResourceExhaustedError(
          absl::StrCat(need.error, with, ". Remedy: ", need.remedy,
                       ", or use a machine or a limit (control group) with more "
                       "memory.")),
      Fits(need, memory.limit) ? ExitCode::kPeersLost : ExitCode::kBadConfiguration);
}

}  // namespace lockstep
