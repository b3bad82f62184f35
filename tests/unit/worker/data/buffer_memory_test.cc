#include "worker/data/buffer_memory.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

constexpr uint64_t kMiB = 1 << 20;

BufferMemory Need(int64_t buffers, int64_t examples, int64_t bytes_per_example) {
  return {buffers, examples, bytes_per_example, "local_sync.load"};
}

TEST_CASE("buffers that fit the available memory to the byte are allowed") {
  const BufferMemory need = Need(3, 1000, 10'000);
  CHECK(CheckBufferMemory(need, 30'000'000).ok());
  CHECK(absl::IsResourceExhausted(CheckBufferMemory(need, 29'999'999)));
}

TEST_CASE("an error about buffers names the bytes and what to lower, and no restart follows it") {
  const absl::Status status = CheckBufferMemory(Need(3, 1000, 10'000), 20'000'000);
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(status.message()),
             Contains("local_sync.load: ") &&
                 Contains("got 3 buffers of 1000 examples of 10000 bytes, 30000000 bytes, with "
                          "20000000 available to this process") &&
                 Contains("Remedy: lower local_sync.load"));
}

TEST_CASE("more bytes of buffers than can be counted are refused without a limit, too") {
  const BufferMemory need = Need(1025, int64_t{1} << 60, 1000);
  CHECK(absl::IsResourceExhausted(CheckBufferMemory(need, std::nullopt)));
  CHECK(CheckBufferMemory(Need(1, int64_t{1} << 40, 1), std::nullopt).ok());
}

TEST_CASE("a machine whose memory is nearly spent allows small buffers") {
  CHECK(CheckBufferMemory(Need(1, 16, kMiB), 0).ok());
  CHECK_FALSE(CheckBufferMemory(Need(1, 17, kMiB), 0).ok());
}

}  // namespace
}  // namespace lockstep::worker
