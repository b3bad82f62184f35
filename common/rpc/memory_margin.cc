#include "common/rpc/memory_margin.h"

#include <algorithm>

#include "common/rpc/limits.h"

namespace lockstep::rpc {
namespace {

// Four chunks of each of 64 workers are 256 MiB.
constexpr uint64_t kMostGrowth = uint64_t{1} << 30;
constexpr uint64_t kShare = 4;
// A worker sends as many chunks of a gradient to a ps at once.
constexpr int64_t kLeastCalls = 4;

}  // namespace

MemoryMargin MarginOf(std::optional<uint64_t> available) {
  const auto growth = static_cast<int64_t>(
      std::min(available.value_or(kShare * kMostGrowth) / kShare, kMostGrowth));
  return {.growth = growth, .unfinished_calls = std::max(kLeastCalls, growth / kMaxMessageBytes)};
}

}  // namespace lockstep::rpc
