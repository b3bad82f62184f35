#include "common/dataset/memory_room.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/available_memory.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

// Not worth reading files of the system for.
constexpr int64_t kSmall = int64_t{1} << 24;

}  // namespace

absl::Status CheckRoomFor(const std::string& file, int64_t bytes) {
  if (bytes <= kSmall) return absl::OkStatus();
  const std::optional<uint64_t> available = AvailableMemory();
  if (!available || static_cast<uint64_t>(bytes) <= *available) return absl::OkStatus();
  return WithExitCode(
      absl::ResourceExhaustedError(absl::StrCat(
          file, ": expected data that fit the memory, got ", bytes, " bytes to hold, with ",
          *available,
          " available to this process. Remedy: use a machine or a limit (control group) "
          "with more memory, or a file with fewer examples.")),
      ExitCode::kBadConfiguration);
}

}  // namespace lockstep
