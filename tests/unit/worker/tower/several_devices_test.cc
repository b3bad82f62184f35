// The towers of one worker on several devices.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
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

// Relative to the largest magnitude of each gradient.
double LargestDifference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double largest = 0;
  for (size_t v = 0; v < a.size(); ++v) {
    const auto wanted = a[v].as<float>();
    double magnitude = 1e-30;
    for (const float value : wanted) magnitude = std::max<double>(magnitude, std::abs(value));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double difference = double{wanted[i]} - double{b[v].as<float>()[i]};
      largest = std::max(largest, std::abs(difference) / magnitude);
    }
  }
  return largest;
}

TEST_CASE("hierarchical copy over several devices gives the mean of the towers") {
  constexpr int kTowers = 4;
  for (const size_t model : {size_t{0}, size_t{3}, size_t{4}}) {
    const ModelGraph graph = GraphOf(Models()[model]);
    const ReducerOptions options = OptionsOf(kTowers, model);
    std::vector<std::vector<Tensor>> wanted;
    for (const int count : {1, 2, 3}) {
      CAPTURE(model, count);
      const auto devices = test::MakeTestDevices(count);
      std::unique_ptr<HierarchicalCopy> copy;
      if (devices.size() > 1) {
        copy = *HierarchicalCopy::Create(test::TowersOn(devices), test::OpsOfTestDevice());
      }
      const TowerDevices towers(test::TowersOn(devices).all(), copy.get());
      const auto group = *MakeGroup(graph, towers, test::OpsOfTestDevice(), options);
      for (int variant = 0; variant < kVariants; ++variant) {
        std::vector<Tensor> gradients = *Train(group.get(), graph, kTowers, variant);
        if (count == 1) {
          wanted.push_back(std::move(gradients));
        } else {
          CHECK(LargestDifference(wanted[static_cast<size_t>(variant)], gradients) < 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
