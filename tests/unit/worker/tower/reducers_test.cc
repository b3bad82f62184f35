#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"
#include "worker/tower/make_reducer.h"
#include "worker/tower/staging.h"

namespace lockstep::worker {
namespace {

// Two trained variables of two elements and the loss, a statistic.
constexpr char kModel[] = R"pb(
  input_shape: [ 2 ]
  layers {
    name: "first"
    dense { units: 1 no_bias: true }
  }
  layers {
    name: "second"
    dense { units: 2 no_bias: true }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

using Values = std::vector<std::vector<float>>;  // by variable

// Reduces the gradients of some towers, ready in the order of a backward pass: from the last
// variable to the first.
struct Step {
  Step(const ReducerOptions& options, const std::vector<Values>& by_tower)
      : graph(GraphOf(kModel)), device(test::MakeTestDevice(1)), staging(device.get()) {
    REQUIRE(graph.variables().size() == 3);
    const std::unique_ptr<OpContext> context = *test::OpsOfTestDevice().CreateContext(device.get());
    streams = *ReductionStreams::Create(options.ps_device, options.towers, graph, device.get());
    towers = *device->CreateStream({.background = options.towers > 1});
    stream = *device->CreateStream({});
    computed = *device->CreateEvent();
    event = *device->CreateEvent();
    const auto reducer = *MakeReducer(options, graph, device.get(), test::OpsOfTestDevice(),
                                      context.get(), streams.get());
    for (size_t i = 0; i < 3 * by_tower.size(); ++i) staging.AddPlace(2 * sizeof(float));
    REQUIRE(staging.Allocate().ok());
    for (int run = 0; run < 2; ++run) {  // the second finds nothing of the first
      Reduce(reducer.get(), by_tower);
    }
  }

  void Reduce(TowerReducer* reducer, std::vector<Values> by_tower) {
    std::vector<TowerGradient> reduced(3);
    open.clear();
    for (int variable = 2; variable >= 0; --variable) {
      std::vector<TowerGradient> gradients;
      for (Values& of_tower : by_tower) {
        const int place = static_cast<int>(3 * gradients.size()) + variable;
        const int64_t size = static_cast<int64_t>(of_tower[variable].size());
        const MutableTensorView host{DType::kFloat32, Shape({size}), of_tower[variable].data()};
        REQUIRE(staging.ToDevice(place, host, towers.get()).ok());
        towers->Record(computed.get());
        gradients.push_back({*staging.OnDevice(place, host), computed.get()});
      }
      reduced[variable] = *reducer->Reduce(variable, gradients, gradients[0].view);
      if (reduced[variable].ready == nullptr) open.push_back(variable);
    }
    Event* const rest = *reducer->Finish();
    CHECK((rest != nullptr) == !open.empty());
    values = {{0, 0}, {0, 0}, {0}};
    for (int variable = 2; variable >= 0; --variable) {
      const int64_t size = static_cast<int64_t>(values[variable].size());
      stream->WaitFor(reduced[variable].ready == nullptr ? rest : reduced[variable].ready);
      Staging::CopyToHost(reduced[variable].view,
                          {DType::kFloat32, Shape({size}), values[variable].data()}, stream.get());
    }
    stream->Record(event.get());
    REQUIRE(event->Wait().ok());
  }

  const ModelGraph graph;
  const std::shared_ptr<Device> device;
  Staging staging;
  std::unique_ptr<ReductionStreams> streams;
  std::unique_ptr<Stream> towers;  // as theirs: several work by themselves
  std::unique_ptr<Event> computed;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> event;
  std::vector<int> open;  // variables that wait for all others
  Values values;
};

const Values kGradients = {{3, -4}, {0, 12}, {100}};

TEST_CASE("the only tower's gradients need no reducer") {
  const ModelGraph graph = GraphOf(kModel);
  CHECK(*MakeReducer({}, graph, nullptr, test::OpsOfTestDevice(), nullptr, nullptr) == nullptr);
}

TEST_CASE("gradients are clipped by value or norm, each by itself, statistics never") {
  ReducerOptions options;
  options.clipping.set_value(3.5f);
  const Step by_value(options, {kGradients});
  CHECK(by_value.open.empty());
  CHECK(by_value.values == Values{{3, -3.5f}, {0, 3.5f}, {100}});
  options.clipping.set_norm(2.5f);
  const Step by_norm(options, {kGradients});
  CHECK(by_norm.open.empty());
  CHECK(by_norm.values == Values{{1.5f, -2}, {0, 2.5f}, {100}});
}

TEST_CASE("gradients clipped by their common norm wait for each other, statistics do not") {
  ReducerOptions options;
  options.clipping.set_global_norm(6.5f);  // of 13
  const Step step(options, {kGradients});
  CHECK(step.open == std::vector<int>{1, 0});
  CHECK(step.values == Values{{1.5f, -2}, {0, 6}, {100}});
}

TEST_CASE("the mean over towers is clipped, not what each of them has") {
  ReducerOptions options{.towers = 2};
  options.clipping.set_value(3.5f);
  const Step step(options, {kGradients, {{1, 2}, {2, -4}, {50}}});
  CHECK(step.values == Values{{2, -1}, {1, 3.5f}, {75}});
}

TEST_CASE("a sum over towers leaves statistics their mean") {
  const Step step({.towers = 2, .count = 1}, {kGradients, {{1, 2}, {2, -4}, {50}}});
  CHECK(step.values == Values{{4, -2}, {2, 8}, {75}});
}

TEST_CASE("the gradient of one tower out of four is scaled, then clipped, statistics never") {
  ReducerOptions options{.count = 4};
  options.clipping.set_value(2);
  const Step step(options, {kGradients});
  CHECK(step.values == Values{{0.75f, -1}, {0, 2}, {100}});
}

TEST_CASE("where the towers are merged changes nothing but the streams") {
  ReducerOptions options{.towers = 2, .ps_device = StrategyDef::ParameterServer::GPU};
  const Values other = {{1, 2}, {2, -4}, {50}};
  CHECK(Step(options, {kGradients, other}).values == Values{{2, -1}, {1, 4}, {75}});
  options.clipping.set_global_norm(std::sqrt(5.5f));  // of the square root of 22
  CHECK(Step(options, {kGradients, other}).open == std::vector<int>{1, 0});
  options.batch_norm_updates = JobDef::FIRST_TOWER;
  options.clipping.set_value(1.5f);
  CHECK(Step(options, {kGradients, other}).values == Values{{1.5f, -1}, {1, 1.5f}, {75}});
}

TEST_CASE("a variable is merged on the tower that has the fewest elements so far") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 4 ]
    layers {
      name: "a"
      dense { units: 3 }
    }
    layers {
      name: "b"
      dense { units: 2 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  REQUIRE(graph.variables().size() == 5);  // of 12, 3, 6, 2 elements and 1
  CHECK(LeastLoadedTowers(graph, 1) == std::vector<int>{0, 0, 0, 0, 0});
  CHECK(LeastLoadedTowers(graph, 2) == std::vector<int>{0, 1, 1, 1, 1});
  CHECK(LeastLoadedTowers(graph, 3) == std::vector<int>{0, 1, 2, 1, 1});
  CHECK(LeastLoadedTowers(graph, 9) == std::vector<int>{0, 1, 2, 3, 4});
}

}  // namespace
}  // namespace lockstep::worker
