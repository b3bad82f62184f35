// The towers of one worker on several devices.
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "worker/tower/hierarchical_copy.h"

namespace lockstep::worker {
namespace {

TEST_CASE("towers on several devices give the bits of as many towers on one") {
  constexpr int kTowers = 3;
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    ReducerOptions options = OptionsOf(kTowers, model);
    if (model % 2 == 0) options.ps_device = StrategyDef::ParameterServer::GPU;
    std::vector<Gradients> wanted;
    for (const int count : {1, 2, 3}) {
      CAPTURE(model, count);
      const auto devices = test::MakeTestDevices(count);
      const auto group =
          *MakeGroup(graph, test::TowersOn(devices), test::OpsOfTestDevice(), options);
      std::vector<Gradients> got = TrainVariants(group.get(), graph, kTowers);
      if (count == 1) {
        wanted = std::move(got);
      } else {
        for (size_t v = 0; v < wanted.size(); ++v) CHECK(AreSame(got[v], wanted[v]));
      }
    }
  }
}

TEST_CASE("hierarchical copy over several devices gives the mean of the towers") {
  constexpr int kTowers = 4;
  for (const size_t model : {size_t{0}, size_t{3}, size_t{4}}) {
    const ModelGraph graph = GraphOf(Models()[model]);
    const ReducerOptions options = OptionsOf(kTowers, model);
    std::vector<Gradients> wanted;
    for (const int count : {1, 2, 3}) {
      CAPTURE(model, count);
      const auto devices = test::MakeTestDevices(count);
      std::unique_ptr<HierarchicalCopy> copy;
      if (devices.size() > 1) {
        copy = *HierarchicalCopy::Create(test::TowersOn(devices), test::OpsOfTestDevice());
      }
      const TowerDevices towers(test::TowersOn(devices).all(), copy.get());
      const auto group = *MakeGroup(graph, towers, test::OpsOfTestDevice(), options);
      std::vector<Gradients> got = TrainVariants(group.get(), graph, kTowers);
      if (count == 1) {
        wanted = std::move(got);
      } else {
        for (size_t v = 0; v < wanted.size(); ++v) {
          CHECK(LargestDifference(wanted[v], got[v]) < 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
