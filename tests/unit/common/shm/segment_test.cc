#include "common/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "common/shm/arena.h"
#include "common/shm/host.h"
#include "tests/unit/common/shm/killed_child.h"

namespace lockstep::shm {
namespace {

FileDescriptor MemoryFile(uint64_t bytes, int seals) {
  FileDescriptor descriptor(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(descriptor.get(), static_cast<off_t>(bytes)) == 0);
  REQUIRE(fcntl(descriptor.get(), F_ADD_SEALS, seals) == 0);
  return descriptor;
}

TEST_CASE("A segment is zeroed, private to the user, and seen by whoever maps it") {
  const auto made = Segment::Create("test", 10000);
  REQUIRE(made.ok());
  const std::span<std::byte> bytes = (*made)->bytes();
  REQUIRE(bytes.size() == 10000);
  CHECK(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
  struct stat about;
  REQUIRE(fstat((*made)->descriptor().get(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  const auto mapped = Segment::Map((*made)->descriptor());
  REQUIRE(mapped.ok());
  bytes[9999] = std::byte{7};
  CHECK((*mapped)->bytes()[9999] == std::byte{7});
  CHECK_FALSE((*mapped)->descriptor().valid());
}

TEST_CASE("A large segment lies where huge pages may, zeroed and of its size") {
  constexpr uint64_t kHugePage = 2 << 20;
  for (const uint64_t size : {kHugePage, 3 * kHugePage - 4096, 3 * kHugePage + 1}) {
    const auto made = Segment::Create("test", size);
    REQUIRE(made.ok());
    const auto mapped = Segment::Map((*made)->descriptor());
    REQUIRE(mapped.ok());
    const std::span<std::byte> bytes = (*made)->bytes();
    CHECK((*mapped)->bytes().size() == size);
    CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kHugePage == 0);
    CHECK(reinterpret_cast<uintptr_t>((*mapped)->bytes().data()) % kHugePage == 0);
    CHECK(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    bytes[size - 1] = std::byte{7};
    CHECK((*mapped)->bytes()[size - 1] == std::byte{7});
  }
}

TEST_CASE("Nobody resizes a segment, and nobody but its maker writes it") {
  const auto made = Segment::Create("test", 8192);
  REQUIRE(made.ok());
  const int fd = (*made)->descriptor().get();
  CHECK(ftruncate(fd, 4096) != 0);
  CHECK(ftruncate(fd, 16384) != 0);
  CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  CHECK(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK(write(fd, "x", 1) < 0);
  const auto mapped = Segment::Map((*made)->descriptor());
  REQUIRE(mapped.ok());
  void* const data = const_cast<std::byte*>((*mapped)->bytes().data());
  CHECK(mprotect(data, 4096, PROT_READ | PROT_WRITE) != 0);
}

TEST_CASE("What could be cut short, or is no memory at all, is not mapped") {
  CHECK(absl::IsInvalidArgument(Segment::Map(MemoryFile(8192, 0)).status()));
  CHECK(absl::IsInvalidArgument(Segment::Map(MemoryFile(8192, F_SEAL_GROW)).status()));
  CHECK(absl::IsInvalidArgument(Segment::Map(MemoryFile(0, F_SEAL_SHRINK | F_SEAL_GROW)).status()));
  CHECK(absl::IsInvalidArgument(
      Segment::Map(FileDescriptor(open("/proc/self/exe", O_RDONLY))).status()));
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const FileDescriptor read_end(ends[0]), write_end(ends[1]);
  CHECK(absl::IsInvalidArgument(Segment::Map(read_end).status()));
  CHECK_FALSE(Segment::Map(FileDescriptor()).ok());
}

TEST_CASE("A segment whose maker has not taken its memory is refused, and takes none here") {
  const FileDescriptor sparse = MemoryFile(1 << 30, F_SEAL_SHRINK | F_SEAL_GROW);
  const absl::Status status = Segment::Map(sparse).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).find("taken only 0") != std::string::npos);
  struct stat about;
  REQUIRE(fstat(sparse.get(), &about) == 0);
  CHECK(about.st_blocks == 0);
}

TEST_CASE("More than the machine has is refused, saying how much there is") {
  CHECK(absl::IsInvalidArgument(Segment::Create("test", 0).status()));
  const absl::Status status = Segment::Create("test", uint64_t{1} << 50).status();
  CHECK(absl::IsResourceExhausted(status));
  CHECK(std::string(status.message()).find("available") != std::string::npos);
}

TEST_CASE("A mapping outlives its maker, even one that is killed") {
  const auto made = Segment::Create("test", 4096);
  REQUIRE(made.ok());
  test::KilledAfter([&] {
    (*made)->bytes()[0] = std::byte{42};
    return 'x';
  });
  CHECK((*made)->bytes()[0] == std::byte{42});
}

TEST_CASE("Tensors of an arena are aligned, apart, and keep the segment") {
  auto made = Segment::Create("test", 64 + 128);
  REQUIRE(made.ok());
  const std::weak_ptr<const Segment> segment = *made;
  std::optional<Arena> arena(*std::move(made));
  made = absl::UnknownError("moved");
  std::optional<Tensor> small = arena->Take(DType::kFloat32, Shape({3}));
  std::optional<Tensor> large = arena->Take(DType::kFloat64, Shape({2, 5}));
  REQUIRE((small && large));
  CHECK(small->is_borrowed());
  CHECK(reinterpret_cast<uintptr_t>(large->data()) % Tensor::kAlignment == 0);
  CHECK_FALSE(arena->Take(DType::kFloat32, Shape({1})).has_value());
  small->as<float>()[2] = 1;
  large->FillZero();
  CHECK(small->as<float>()[2] == 1);
  const Tensor copy = small->Clone();
  CHECK_FALSE(copy.is_borrowed());
  arena.reset();
  small.reset();
  CHECK_FALSE(segment.expired());
  large.reset();
  CHECK(segment.expired());
  CHECK(copy.as<float>()[2] == 1);
}

TEST_CASE("A machine knows itself") {
  const auto id = BootId();
  REQUIRE(id.ok());
  CHECK(id->size() == 36);
  CHECK(*id == *BootId());
}

}  // namespace
}  // namespace lockstep::shm
