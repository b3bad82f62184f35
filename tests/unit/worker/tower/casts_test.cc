#include "worker/tower/casts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/worker/tower/models.h"
#include "worker/tower/pass_buffers.h"

namespace lockstep::worker {
namespace {

TowerSchedule InBfloat16(const ModelGraph& graph) {
  return WithActivations(graph, MakeTowerSchedule(graph), DType::kBFloat16);
}

// "conv1: bfloat16" for a layer, "cast input: bfloat16" for a cast, with the type of the output.
std::vector<std::string> TextsOf(const ModelGraph& graph, const TowerSchedule& schedule) {
  std::vector<std::string> texts;
  for (const ScheduledOp& op : schedule.ops) {
    const std::string& name = graph.nodes()[op.node].name;
    texts.push_back((op.is_cast ? "cast " + name : name) + ": " +
                    std::string(Name(schedule.types[op.output])));
  }
  return texts;
}

TEST_CASE("the batch is cast to bfloat16, and the scores back for the loss") {
  const ModelGraph graph = GraphOf(kLeNet);
  const TowerSchedule schedule = InBfloat16(graph);
  CHECK(TextsOf(graph, schedule) ==
        std::vector<std::string>{"cast input: bfloat16", "conv1: bfloat16", "pool1: bfloat16",
                                 "conv2: bfloat16", "pool2: bfloat16", "dense1: bfloat16",
                                 "tanh: bfloat16", "dense2: bfloat16", "cast dense2: float32"});
  CHECK(schedule.losses[0].scores == schedule.ops.back().output);
  CHECK(schedule.ops[1].inputs == std::vector<ValueId>{schedule.ops[0].output});
}

TEST_CASE(
    "layers without ops for bfloat16 keep float32, and a value is cast once for its readers") {
  const ModelGraph graph = GraphOf(kWideAndDeep);
  const TowerSchedule schedule = InBfloat16(graph);
  std::vector<int> casts;
  for (const ScheduledOp& op : schedule.ops) {
    const LayerDef& layer = graph.nodes()[op.node].layer;
    if (op.is_cast) {
      casts.push_back(op.node);
      CHECK(op.variables.empty());
      CHECK(schedule.types[op.inputs[0]] != schedule.types[op.output]);
      continue;
    }
    INFO(graph.nodes()[op.node].name);
    const bool is_lookup = layer.has_embedding() || layer.has_columns();
    CHECK(schedule.types[op.output] == (is_lookup ? DType::kFloat32 : DType::kBFloat16));
    for (const ValueId input : op.inputs) {
      CHECK(schedule.types[input] == schedule.types[op.output]);
    }
  }
  std::ranges::sort(casts);
  CHECK(std::ranges::adjacent_find(casts) == casts.end());
  CHECK(casts.size() >= 3);
}

TEST_CASE("gradients are cast back only where they are wanted") {
  const ModelGraph graph = GraphOf(kLeNet);
  const TowerSchedule schedule = InBfloat16(graph);
  CHECK_FALSE(schedule.wants_gradient[schedule.ops.front().output]);  // of the batch
  CHECK(schedule.wants_gradient[schedule.ops.back().output]);         // of the scores
}

TEST_CASE("activations in bfloat16 take half the memory, and in float32 nothing changes") {
  const ModelGraph graph = GraphOf(kLeNet);
  const TowerSchedule plain = MakeTowerSchedule(graph);
  const TowerSchedule same = WithActivations(graph, plain, DType::kFloat32);
  CHECK(TextsOf(graph, same) == TextsOf(graph, plain));
  const TowerSchedule schedule = InBfloat16(graph);
  const auto bytes_of_conv1 = [&](const TowerSchedule& of, size_t op) {
    const PassBuffers buffers(graph, of, {.batch = 4});
    return buffers.lives[buffers.value[of.ops[op].output]].bytes;
  };
  CHECK(bytes_of_conv1(plain, 0) == 2 * bytes_of_conv1(schedule, 1));
}

}  // namespace
}  // namespace lockstep::worker
