#include "common/shm/host.h"

#include "absl/strings/ascii.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"

namespace lockstep::shm {
namespace {

constexpr char kBootIdPath[] = "/proc/sys/kernel/random/boot_id";
constexpr size_t kBootIdBytes = 64;  // at most

}  // namespace

absl::StatusOr<std::string> BootId() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string id, ReadFile(kBootIdPath, kBootIdBytes));
  return std::string(absl::StripAsciiWhitespace(id));
}

}  // namespace lockstep::shm
