// The towers of one worker on several devices.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"

namespace lockstep::worker {
namespace {

TEST_CASE("towers on several devices give the bits of as many towers on one") {
  constexpr int kTowers = 3;
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    ReducerOptions options = OptionsOf(kTowers, model);
    if (model % 2 == 0) options.ps_device = StrategyDef::ParameterServer::GPU;
    std::vector<std::vector<Tensor>> wanted;
    for (const int count : {1, 2, 3}) {
      CAPTURE(model, count);
      const auto devices = test::MakeTestDevices(count);
      const auto group =
          *MakeGroup(graph, test::TowersOn(devices), test::OpsOfTestDevice(), options);
      for (int variant = 0; variant < kVariants; ++variant) {
        std::vector<Tensor> gradients = *Train(group.get(), graph, kTowers, variant);
        if (count == 1) {
          wanted.push_back(std::move(gradients));
        } else {
          CHECK(AreSame(gradients, wanted[static_cast<size_t>(variant)]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
