#include "worker/strategy/replicated/replica_server.h"

#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace lockstep::worker
