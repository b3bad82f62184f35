#include "common/rpc/memory_margin.h"

#include <catch2/catch.hpp>

#include "common/rpc/limits.h"

namespace lockstep::rpc {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

TEST_CASE("Unfinished messages get at most half of a small container's memory") {
  for (const int64_t available : {256, 400, 512, 1024, 3000}) {
    CAPTURE(available);
    const MemoryMargin margin = MarginOf(available * kMebibyte);
    CHECK(margin.growth == available * kMebibyte / 4);
    CHECK(margin.growth + margin.unfinished_calls * kMaxMessageBytes <= available * kMebibyte / 2);
    CHECK(margin.unfinished_calls >= 4);
  }
}

TEST_CASE("A process may grow by 1 GiB where there is enough, or where nobody knows") {
  for (const MemoryMargin margin :
       {MarginOf(4096 * kMebibyte), MarginOf(1'000'000 * kMebibyte), MarginOf(std::nullopt)}) {
    CHECK(margin.growth == 1024 * kMebibyte);
    CHECK(margin.unfinished_calls == 64);
  }
}

TEST_CASE("The chunks of a worker may be unfinished however little memory there is") {
  CHECK(MarginOf(0).growth == 0);
  CHECK(MarginOf(0).unfinished_calls == 4);
}

}  // namespace
}  // namespace lockstep::rpc
