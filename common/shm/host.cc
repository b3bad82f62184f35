#include "common/shm/host.h"

#include <fcntl.h>

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/shm/descriptor.h"

namespace lockstep::shm {

absl::StatusOr<std::string> BootId() {
  constexpr char kPath[] = "/proc/sys/kernel/random/boot_id";
  const Descriptor file(open(kPath, O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t size = file ? read(file.get(), text, sizeof text) : -1;
  if (size <= 0) return absl::NotFoundError(absl::StrCat(kPath, ": it cannot be read"));
  return std::string(
      absl::StripAsciiWhitespace(absl::string_view(text, static_cast<size_t>(size))));
}

}  // namespace lockstep::shm
