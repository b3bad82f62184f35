#include "worker/strategy/replicated/state_reader.h"

#include <catch2/catch.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/monotonic_wait.h"
#include "tests/support/bytes_transport.h"
#include "tests/support/manual_time.h"
#include "tests/unit/worker/strategy/replicated/layout_for_tests.h"

namespace lockstep::worker {
namespace {

// Answers a call when it is cancelled.
class SilentPs final : public test::BytesTransport {
 public:
  void Cancel() override {
    for (Callback<ReceivedTensors>& call : std::exchange(calls_, {})) {
      call(absl::CancelledError("cancelled"));
    }
  }
  void Start(const CallOptions&, google::protobuf::Message*, const std::vector<OutgoingTensor>&,
             google::protobuf::Message*, Callback<ReceivedTensors> done) override {
    calls_.push_back(std::move(done));
  }

 private:
  std::vector<Callback<ReceivedTensors>> calls_;
};

TEST_CASE("the end of a cancelled reading is not told under a lock") {
  OptimizerDef optimizer;
  optimizer.mutable_sgd();
  const VariableLayout layout = LayoutForTests();
  const OptimizerRules rules = *OptimizerRules::Create(optimizer);
  SilentPs ps;
  const std::vector<TensorTransport*> shards = {&ps};
  test::ManualTime time;
  StateReader reader({}, layout, rules, {.shards = shards, .timer = &time, .clock = &time});
  MonotonicNotification returned;
  std::thread other;
  bool is_in_time = false;
  reader.Read(GlobalStep(7), [&](const absl::StatusOr<ReplicaState>& state) {
    CHECK(absl::IsCancelled(state.status()));
    other = std::thread([&] {
      reader.Cancel();
      returned.Notify();
    });
    is_in_time = returned.WaitFor(absl::Seconds(10));
  });
  reader.Cancel();
  REQUIRE(other.joinable());
  other.join();
  CHECK(is_in_time);
}

}  // namespace
}  // namespace lockstep::worker
