#include "common/base/memory_room.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep {
namespace {

constexpr uint64_t kMiB = 1 << 20;

MemoryNeed Need(std::optional<uint64_t> bytes) {
  return {.error = "data.prefetch: too much", .bytes = bytes, .remedy = "lower it"};
}

TEST_CASE("what fits the available memory to the byte has room") {
  CHECK(CheckRoomFor(Need(30 * kMiB), {.available = 30 * kMiB, .limit = 40 * kMiB}).ok());
  CHECK_FALSE(CheckRoomFor(Need(30 * kMiB), {.available = 30 * kMiB - 1, .limit = 40 * kMiB}).ok());
  CHECK(CheckRoomFor(Need(uint64_t{1} << 40), ProcessMemory{}).ok());
}

TEST_CASE("a lack of memory ends with 138 where it may pass, and with 78 where it stays") {
  const absl::Status passes =
      CheckRoomFor(Need(30 * kMiB), {.available = 20 * kMiB, .limit = 30 * kMiB});
  CHECK(absl::IsResourceExhausted(passes));
  CHECK(ExitCodeFor(passes) == ExitCode::kPeersLost);
  CHECK(passes.message() ==
        "data.prefetch: too much, with 20971520 available to this process. Remedy: lower it, or "
        "use a machine or a limit (control group) with more memory.");
  const absl::Status stays =
      CheckRoomFor(Need(30 * kMiB), {.available = 20 * kMiB, .limit = 30 * kMiB - 1});
  CHECK(ExitCodeFor(stays) == ExitCode::kBadConfiguration);
}

TEST_CASE("more bytes than can be counted never have room") {
  const absl::Status refused = CheckRoomFor(Need(std::nullopt), ProcessMemory{});
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
}

TEST_CASE("a machine whose memory is nearly spent has room for small amounts") {
  CHECK(CheckRoomFor(Need(16 * kMiB), {.available = 0, .limit = kMiB}).ok());
  CHECK_FALSE(CheckRoomFor(Need(16 * kMiB + 1), {.available = 0, .limit = kMiB}).ok());
}

}  // namespace
}  // namespace lockstep
