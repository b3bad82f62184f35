#include "worker/strategy/replicated/replica_server.h"

#include <catch2/catch.hpp>
#include <thread>

#include "common/base/monotonic_wait.h"
#include "tests/unit/worker/strategy/replicated/layout_for_tests.h"

namespace lockstep::worker {
namespace {

TEST_CASE("a version is read while this worker has it, and no other") {
  OptimizerDef optimizer;
  optimizer.mutable_momentum()->set_momentum(0.5f);
  const VariableLayout layout = LayoutForTests();
  const OptimizerRules rules = *OptimizerRules::Create(optimizer);
  ReplicaState state = UninitializedState(layout, rules);
  state.version = GlobalStep(7);
  float next = 1;
  for (const MutableTensorView& view : TensorsOf(&state)) {
    for (float& value : view.as<float>()) value = next++;
  }
  const auto replicas = *Replicas::Create({.towers = 2}, layout, rules, std::move(state));

  ReplicaServer server;
  CHECK(absl::IsUnavailable(server.Read(GlobalStep(7), 0, 4).status()));
  server.Serve(replicas.get());
  CHECK(absl::IsUnavailable(server.Read(GlobalStep(6), 0, 4).status()));
  CHECK(absl::IsUnavailable(server.Read(GlobalStep(8), 0, 4).status()));
  // "w", its slot, "mean", "fixed", the loss.
  const absl::StatusOr<StatePiece> piece = server.Read(GlobalStep(7), 4, 8);
  REQUIRE(piece.ok());
  CHECK(piece->total == (2 + 2 + 2 + 2 + 1) * sizeof(float));
  const std::vector<float> expected = {2, 3};
  REQUIRE(piece->bytes.size() == 2 * sizeof(float));
  CHECK(std::memcmp(piece->bytes.data(), expected.data(), piece->bytes.size()) == 0);
}

TEST_CASE("a read does not wait for a version that is being made") {
  ReplicaServer server;
  MonotonicNotification answered;
  absl::Status answer;
  bool is_in_time = false;
  std::thread reader;
  server.Change([&] {
    reader = std::thread([&] {
      answer = server.Read(GlobalStep(7), 0, 4).status();
      answered.Notify();
    });
    is_in_time = answered.WaitFor(absl::Seconds(10));
  });
  reader.join();
  CHECK(is_in_time);
  CHECK_THAT(std::string(answer.message()), Catch::Contains("makes its next version"));
}

}  // namespace
}  // namespace lockstep::worker
