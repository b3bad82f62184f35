#include "worker/tower/schedule.h"

#include <catch2/catch.hpp>

#include "tests/unit/worker/tower/models.h"
#include "worker/tower/memory_plan.h"

namespace lockstep::worker {
namespace {

std::vector<std::string> NamesOf(const ModelGraph& graph, const TowerSchedule& schedule) {
  std::vector<std::string> names;
  for (const ScheduledOp& op : schedule.ops) {
    names.push_back(graph.nodes()[op.node].name + (op.relu ? "+relu" : ""));
  }
  return names;
}

TEST_CASE("a relu is folded into the layer before it, and a flatten disappears") {
  const ModelGraph graph = GraphOf(kLeNet);
  const TowerSchedule schedule = MakeTowerSchedule(graph);
  CHECK(NamesOf(graph, schedule) == std::vector<std::string>{"conv1+relu", "pool1", "conv2+relu",
                                                             "pool2", "dense1", "tanh", "dense2"});
  // dense1 reads what pool2 wrote, in the shape that flat gives it.
  const ScheduledOp& dense = schedule.ops[4];
  CHECK(graph.nodes()[dense.inputs[0]].name == "pool2");
  CHECK(graph.nodes()[dense.input_nodes[0]].name == "flat");
}

TEST_CASE("a relu stays where somebody else reads what it reads") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 4 ]
    layers {
      name: "fc"
      dense { units: 3 }
    }
    layers {
      name: "relu"
      relu {}
    }
    layers {
      name: "sum"
      add {}
      inputs: [ "fc", "relu" ]
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  CHECK(NamesOf(graph, MakeTowerSchedule(graph)) == std::vector<std::string>{"fc", "relu", "sum"});
}

TEST_CASE("a folded relu runs where its layer stands, ahead of layers between them") {
  const ModelGraph graph = GraphOf(kResidual);
  CHECK(NamesOf(graph, MakeTowerSchedule(graph)) ==
        std::vector<std::string>{"stem", "norm+relu", "left+relu", "right", "right_norm", "sum",
                                 "sigmoid", "joined", "fc"});
}

TEST_CASE("gradients are wanted only behind the first variable") {
  const ModelGraph graph = GraphOf(kRegression);
  const TowerSchedule schedule = MakeTowerSchedule(graph);
  for (const ScheduledOp& op : schedule.ops) {
    INFO(graph.nodes()[op.node].name);
    CHECK(schedule.wants_gradient[op.output] == (graph.nodes()[op.node].name != "pool"));
  }
  CHECK(!schedule.wants_gradient[0]);
}

TEST_CASE("frozen variables want no gradient, those behind them do") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 4 ]
    layers {
      name: "a"
      frozen: true
      dense { units: 3 }
    }
    layers {
      name: "b"
      dense { units: 3 }
    }
    layers {
      name: "c"
      frozen: true
      dense { units: 3 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  CHECK(MakeTowerSchedule(graph).wants_gradient ==
        std::vector<bool>{false, false, true, true, false});
}

TEST_CASE("buffers alive together never overlap, and memory is used again") {
  // A small exact case: the third fits where the first was.
  const std::vector<BufferLife> chain = {{64, 0, 1}, {64, 1, 2}, {64, 2, 3}};
  CHECK(PlanMemory(chain).total == 128);

  // Many sizes and lives, made by a simple recurrence.
  std::vector<BufferLife> lives;
  uint32_t state = 1;
  const auto next = [&state](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  size_t sum = 0;
  for (int i = 0; i < 200; ++i) {
    const int first = static_cast<int>(next(100));
    lives.push_back({next(5000), first, first + static_cast<int>(next(20))});
    sum += lives.back().bytes;
  }
  const MemoryPlan plan = PlanMemory(lives);
  CHECK(plan.total < sum / 2);
  for (size_t a = 0; a < lives.size(); ++a) {
    CHECK(plan.offsets[a] % Tensor::kAlignment == 0);
    CHECK(plan.offsets[a] + lives[a].bytes <= plan.total);
    for (size_t b = a + 1; b < lives.size(); ++b) {
      const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
      const bool apart = plan.offsets[a] + lives[a].bytes <= plan.offsets[b] ||
                         plan.offsets[b] + lives[b].bytes <= plan.offsets[a];
      if (together && !apart) FAIL("buffers " << a << " and " << b << " overlap");
    }
  }
}

TEST_CASE("no buffers need no memory") { CHECK(PlanMemory({}).total == 0); }

}  // namespace
}  // namespace lockstep::worker
