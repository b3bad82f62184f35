// Messages between workers whose bits flip on their way.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/fault_proxy.h"
#include "tests/unit/worker/peer/peers_for_tests.h"
#include "worker/peer/member_monitor.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLength = 1 << 20;

TEST_CASE("bits that flip between workers change no bit of a sum, with checksums") {
  test::PeerWorkers workers(2);
  test::FaultProxy proxy("127.0.0.1:0", workers.address(1));
  proxy.FlipBits(3 << 20);  // each third message
  std::vector<std::unique_ptr<PeerGroupReducer>> reducers;
  for (int position = 0; position < 2; ++position) {
    Group group = workers.GroupOf(2, 1, position);
    group.members[1].address = proxy.address();
    PeerGroupReducerOptions options = workers.OptionsFor(group, ReductionOver(2, kLength));
    options.checksums = true;
    reducers.push_back(PeerGroupReducer::Create(options, workers.service(position)).value());
  }
  for (int64_t step = 0; step < 4; ++step) {
    Reducing first(reducers[0].get(), kLength, step);
    Reducing second(reducers[1].get(), kLength, step);
    REQUIRE(first.Wait().ok());
    REQUIRE(second.Wait().ok());
    for (const auto& reducer : reducers) {
      const auto sums = reducer->tensor(0, 0).as<float>();
      CHECK(std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == 2; }));
    }
  }
  CHECK(proxy.num_flips() > 3);
}

TEST_CASE("A member that must have a checksum gets DATA_LOSS without one, and may repeat") {
  test::PeerWorkers workers(2);
  workers.service(1)->ExpectChecksums(true);
  Stranger stranger(workers, 1);
  const Tensor segment = Tensor::Zeros(DType::kFloat32, Shape({4}));
  const absl::Status status =
      stranger.SendAndWait(Stranger::RingMessage(workers.GroupOf(2, 1, 0), 8, 0), BytesOf(segment));
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("expected metadata lockstep-crc32c"));
  CHECK(MayRepeat(status));
}

}  // namespace
}  // namespace lockstep::worker
