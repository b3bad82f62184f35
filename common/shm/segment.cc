#include "common/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"

namespace lockstep::shm {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

absl::Status Failed(const char* what, uint64_t bytes) {
  const std::string message =
      absl::StrCat("shared memory of ", bytes, " bytes: ", what, ": ", std::strerror(errno));
  const bool is_short = errno == ENOMEM || errno == ENOSPC || errno == EMFILE || errno == ENFILE;
  return is_short ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

// What can be had without pushing others out; nullopt where the system does not say.
std::optional<uint64_t> AvailableMemory() {
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return std::nullopt;
  std::optional<uint64_t> available;
  char line[128];
  unsigned long long kilobytes = 0;
  while (!available && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) available = kilobytes * 1024;
  }
  std::fclose(file);
  return available;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Segment>> Segment::Create(const char* name, uint64_t bytes) {
  if (bytes == 0 || bytes > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory of ", bytes, " bytes"));
  }
  // The system would rather end a process than refuse.
  const std::optional<uint64_t> available = AvailableMemory();
  if (available.has_value() && bytes > *available) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "shared memory of ", bytes, " bytes: the machine has ", *available, " bytes available"));
  }
  FileDescriptor descriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.valid()) return Failed("memfd_create", bytes);
  if (fchmod(descriptor.get(), S_IRUSR | S_IWUSR) != 0) return Failed("fchmod", bytes);
  if (fallocate(descriptor.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    return Failed("fallocate", bytes);
  }
  if (fcntl(descriptor.get(), F_ADD_SEALS, kFixedSize) != 0) return Failed("sealing", bytes);
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor.get(), 0);
  if (data == MAP_FAILED) return Failed("mmap", bytes);
  std::shared_ptr<Segment> segment(
      new Segment(std::move(descriptor), static_cast<std::byte*>(data), bytes));
  // Only the mapping just made may write. Linux before 5.1 does not know that seal.
  (void)fcntl(segment->descriptor_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  if (fcntl(segment->descriptor_.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0) {
    return Failed("sealing", bytes);
  }
  return segment;
}

absl::StatusOr<std::shared_ptr<const Segment>> Segment::Map(const FileDescriptor& descriptor) {
  struct stat about;
  if (fstat(descriptor.get(), &about) != 0) return Failed("fstat", 0);
  const int seals = fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize) {
    return absl::InvalidArgumentError(
        "shared memory: expected a segment of fixed size, got a descriptor that is none");
  }
  if (about.st_size <= 0) return absl::InvalidArgumentError("shared memory: it has no bytes");
  const auto size = static_cast<uint64_t>(about.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor.get(), 0);
  if (data == MAP_FAILED) return Failed("mmap", size);
  return std::shared_ptr<const Segment>(
      new Segment(FileDescriptor(), static_cast<std::byte*>(data), size));
}

Segment::~Segment() { munmap(data_, size_); }

}  // namespace lockstep::shm
