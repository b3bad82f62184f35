#include "common/base/ids.h"

#include <catch2/catch.hpp>
#include <limits>
#include <sstream>
#include <type_traits>

#include "absl/container/flat_hash_set.h"

namespace lockstep {
namespace {

static_assert(!std::is_convertible_v<int64_t, GlobalStep>);
static_assert(!std::is_convertible_v<GlobalStep, int64_t>);
static_assert(!std::is_constructible_v<ShardIndex, WorkerIndex>);
static_assert(sizeof(WorkerIndex) == sizeof(uint32_t));

TEST_CASE("Ids compare, count, print and hash by value") {
  CHECK(GlobalStep() == GlobalStep(0));
  CHECK(GlobalStep(4).next() == GlobalStep(5));
  CHECK(GlobalStep(4) < GlobalStep(5));
  CHECK(GlobalStep(-1) < GlobalStep(0));
  std::ostringstream out;
  out << WorkerIndex(7);
  CHECK(out.str() == "7");
  absl::flat_hash_set<WorkerIndex> workers = {WorkerIndex(1), WorkerIndex(2), WorkerIndex(1)};
  CHECK(workers.size() == 2);
}

TEST_CASE("The largest step is its own successor") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(GlobalStep(kMost - 1).next() == GlobalStep(kMost));
  CHECK(GlobalStep(kMost).next() == GlobalStep(kMost));
  CHECK(GlobalStep(std::numeric_limits<int64_t>::min()).next() < GlobalStep(0));
}

}  // namespace
}  // namespace lockstep
