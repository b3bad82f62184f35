#include "worker/data/buffer_memory.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

TEST_CASE("what buffers need is told with how it comes about") {
  const MemoryNeed need = NeedOf({.buffers = 3,
                                  .examples = 1000,
                                  .bytes_per_example = 10'000,
                                  .field = "local_sync.load",
                                  .remedy = "lower it"});
  CHECK(need.bytes == 30'000'000);
  CHECK(need.error ==
        "local_sync.load: expected buffers that fit the memory, got 3 buffers of 1000 examples of "
        "10000 bytes, 30000000 bytes");
  CHECK(need.remedy == "lower it");
}

TEST_CASE("the orders in which examples are drawn need memory, too") {
  BufferMemory memory{.buffers = 3,
                      .examples = 1000,
                      .bytes_per_example = 10'000,
                      .orders = 4,
                      .examples_in_order = 500,
                      .field = "batch_per_tower"};
  const MemoryNeed need = NeedOf(memory);
  CHECK(need.bytes == 30'000'000 + 4 * 500 * 8);
  CHECK(need.error ==
        "batch_per_tower: expected buffers that fit the memory, got 3 buffers of 1000 examples of "
        "10000 bytes, 30000000 bytes, and 16000 bytes of example numbers (orders of 500: 4)");
  memory.examples_in_order = int64_t{1} << 60;
  CHECK_FALSE(NeedOf(memory).bytes.has_value());
}

TEST_CASE("more bytes of buffers than can be counted have no number") {
  const MemoryNeed need = NeedOf({.buffers = 1025,
                                  .examples = int64_t{1} << 60,
                                  .bytes_per_example = 1000,
                                  .field = "global_batch"});
  CHECK_FALSE(need.bytes.has_value());
}

}  // namespace
}  // namespace lockstep::worker
