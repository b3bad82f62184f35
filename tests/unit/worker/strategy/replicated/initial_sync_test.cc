#include "worker/strategy/replicated/initial_sync.h"

#include <catch2/catch.hpp>

#include "tests/unit/worker/strategy/replicated/layout_for_tests.h"

namespace lockstep::worker {
namespace {

TEST_CASE("the log says how many tensors the other towers get from tower 0") {
  OptimizerDef optimizer;
  optimizer.mutable_momentum()->set_momentum(0.5f);
  const VariableLayout layout = LayoutForTests();
  const ReplicaState state = UninitializedState(layout, *OptimizerRules::Create(optimizer));
  // "w" with its slot, "mean" and "fixed".
  CHECK(InitialSyncText(state, 2) ==
        "the initial sync copies 3 variables and 1 slot of tower 0 to 1 other tower");
  CHECK(InitialSyncText(state, 1).empty());
}

TEST_CASE("untrained variables that are nobody's copies are warned of, each once") {
  CHECK(InitialSyncWarnings(LayoutForTests(), 2).empty());
  Placement placement = PlacementForTests();
  placement.mutable_variables(1)->set_name("tower7/mean");
  placement.mutable_variables(2)->set_name("tower8/fixed");
  const VariableLayout layout = *VariableLayout::Create(placement);
  const std::vector<std::string> warnings = InitialSyncWarnings(layout, 2);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] ==
        "Cannot find mean, whose copy \"tower7/mean\" would be on tower 7: the initial sync takes "
        "it for a variable of the model. Remedy: give the layer another name");
  CHECK(warnings[1].find("tower8/fixed") != std::string::npos);
  CHECK(InitialSyncWarnings(layout, 1).empty());
}

}  // namespace
}  // namespace lockstep::worker
