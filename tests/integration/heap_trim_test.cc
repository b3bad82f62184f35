// What a ps takes of the memory of its machine when it has dropped what it held.
#include <catch2/catch.hpp>
#include <vector>

#include "common/client/ps_control.h"
#include "tests/conformance/small_job.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/support/await.h"
#include "tests/support/ps_data.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kNextLook = absl::Milliseconds(100);
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr int64_t kElements = 16 << 20;
// Elements of a message. Small: on a busy machine a call may end more than a second after the drop,
// and its message then stays in the heap (HeapTrimPolicy).
constexpr int64_t kPiece = 256 << 10;
constexpr uint64_t kLeft = 16 * kMebibyte;  // of other things
constexpr uint64_t kDense = kElements * sizeof(float);

TEST_CASE("A ps gives back the memory of gradients that it has dropped with their epoch") {
  Cluster cluster(1, 2);
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  const ClientOptions client{.address = cluster.spec().ps[0], .name = "ps 0"};
  const auto control = MakePsControl(client);
  const auto data = MakePsData(client);
  SetViewRequest view = TwoWorkers();
  view.set_cluster(cluster.spec().Canonical());
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  const uint64_t before = MemoryOf(ps).own;
  REQUIRE(CallAndWait(*control, kCreateVariables, Variables({kElements})).ok());
  const std::vector<float> piece(kPiece, 1);
  for (const uint32_t worker : {0, 1}) {
    for (int64_t begin = 0; begin < kElements; begin += kPiece) {
      const auto pushed = Await<PushReply>([&](auto done) {
        data->Push(PushOf(worker, 0, 0, kElements, begin, begin + kPiece), {BytesOf(piece)},
                   std::move(done));
      });
      REQUIRE(pushed.ok());
    }
  }
  REQUIRE(MemoryOf(ps).own > before + 2 * kDense);
  view.set_epoch(2);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  const absl::Time deadline = absl::Now() + kWhole;
  uint64_t after = MemoryOf(ps).own;
  while (after > before + kLeft && absl::Now() < deadline) {
    REQUIRE_FALSE(ps.Wait(kNextLook).has_value());
    after = MemoryOf(ps).own;
  }
  CAPTURE(before, after);
  CHECK(after <= before + kLeft);
}

}  // namespace
}  // namespace lockstep::test
