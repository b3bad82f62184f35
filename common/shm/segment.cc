#include "common/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/available_memory.h"
#include "common/base/status_macros.h"

namespace lockstep::shm {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr uint64_t kStatBlock = 512;  // of st_blocks, whatever the file system's own is

absl::Status Failed(const char* what, uint64_t bytes) {
  const std::string message =
      absl::StrCat("shared memory of ", bytes, " bytes: ", what, ": ", std::strerror(errno));
  const bool is_short = errno == ENOMEM || errno == ENOSPC || errno == EMFILE || errno == ENFILE;
  return is_short ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

// Beyond so much, a mapping begins where a huge page may: rows from all over a table, and passes
// over large tensors, wait for the translation of addresses less.
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// MAP_FAILED when the system does not.
void* MapShared(const FileDescriptor& descriptor, uint64_t bytes, int protection, int flags) {
  if (bytes < kHugePage) {
    return mmap(nullptr, bytes, protection, MAP_SHARED | flags, descriptor.get(), 0);
  }
  const uint64_t room = bytes + kHugePage;
  void* const reserved =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(reserved);
  const uint64_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  void* const mapped =
      mmap(begin + before, bytes, protection, MAP_SHARED | MAP_FIXED | flags, descriptor.get(), 0);
  if (mapped == MAP_FAILED) {
    munmap(reserved, room);
    return MAP_FAILED;
  }
  if (before > 0) munmap(begin, before);
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t used = before + (bytes + page - 1) / page * page;
  if (room > used) munmap(begin + used, room - used);
  return mapped;
}

// Gives memory that nobody has touched huge pages, as far as there are any. A system that does not
// know how (Linux before 6.1) leaves it as it is, and as good, only slower.
void AskForHugePages(std::byte* memory, uint64_t bytes) {
#ifndef MADV_COLLAPSE
  constexpr int MADV_COLLAPSE = 25;
#endif
  const uint64_t whole = bytes / kHugePage * kHugePage;
  // One byte of each: the system extends what is there.
  for (uint64_t at = 0; at < whole; at += kHugePage) {
    static_cast<void>(*reinterpret_cast<volatile const std::byte*>(memory + at));
  }
  if (whole > 0) (void)madvise(memory, whole, MADV_COLLAPSE);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Segment>> Segment::Create(const char* name, uint64_t bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Segment> segment, Reserve(name, bytes));
  LOCKSTEP_RETURN_IF_ERROR(segment->TakeMemory());
  return segment;
}

absl::StatusOr<std::shared_ptr<Segment>> Segment::Reserve(const char* name, uint64_t bytes) {
  if (bytes == 0 || bytes > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory of ", bytes, " bytes"));
  }
  // The system would rather end a process than refuse.
  const std::optional<uint64_t> available = AvailableMemory();
  if (available.has_value() && bytes > *available) {
    return absl::ResourceExhaustedError(absl::StrCat("shared memory of ", bytes,
                                                     " bytes: machine and control group have ",
                                                     *available, " bytes available"));
  }
  FileDescriptor descriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.valid()) return Failed("memfd_create", bytes);
  if (fchmod(descriptor.get(), S_IRUSR | S_IWUSR) != 0) return Failed("fchmod", bytes);
  if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) {
    return Failed("ftruncate", bytes);
  }
  if (fcntl(descriptor.get(), F_ADD_SEALS, kFixedSize) != 0) return Failed("sealing", bytes);
  void* const data = MapShared(descriptor, bytes, PROT_READ | PROT_WRITE, 0);
  if (data == MAP_FAILED) return Failed("mmap", bytes);
  return std::shared_ptr<Segment>(
      new Segment(std::move(descriptor), static_cast<std::byte*>(data), bytes));
}

absl::Status Segment::TakeMemory() {
  AskForHugePages(data_, size_);
  if (fallocate(descriptor_.get(), 0, 0, static_cast<off_t>(size_)) != 0) {
    return Failed("fallocate", size_);
  }
  (void)madvise(data_, size_, MADV_POPULATE_WRITE);
  // Only the mapping that it has may write. Linux before 5.1 does not know that seal.
  (void)fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  if (fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0) return Failed("sealing", size_);
  return absl::OkStatus();
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
  // What its maker has not taken, a reader takes at its own cost, page by page.
  const auto taken = static_cast<uint64_t>(about.st_blocks) * kStatBlock;
  if (taken < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory of ", size, " bytes: its maker has taken only ", taken));
  }
  void* const data = MapShared(descriptor, size, PROT_READ, MAP_POPULATE);
  if (data == MAP_FAILED) return Failed("mmap", size);
  return std::shared_ptr<const Segment>(
      new Segment(FileDescriptor(), static_cast<std::byte*>(data), size));
}

Segment::~Segment() { munmap(data_, size_); }

}  // namespace lockstep::shm
