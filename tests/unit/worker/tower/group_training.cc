#include "tests/unit/worker/tower/group_training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/tower/batch_rows.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBatch = 4;

}  // namespace

const char kDense[] = R"pb(
  name: "dense"
  input_shape: [ 6 ]
  layers {
    name: "left"
    dense { units: 5 }
  }
  layers {
    name: "left_relu"
    relu {}
  }
  layers {
    name: "right"
    inputs: "input"
    dense { units: 5 no_bias: true }
  }
  layers {
    name: "right_tanh"
    tanh {}
  }
  layers {
    name: "sum"
    inputs: [ "left_relu", "right_tanh" ]
    add {}
  }
  layers {
    name: "drop"
    dropout { rate: 0.25 }
  }
  layers {
    name: "both"
    inputs: [ "drop", "right_tanh" ]
    concatenate {}
  }
  layers {
    name: "hidden"
    dense { units: 7 }
  }
  layers {
    name: "gate"
    sigmoid {}
  }
  layers {
    name: "scores"
    dense { units: 3 }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

// Random numbers in two places, one of which needs no input.
const char kRandom[] = R"pb(
  name: "random"
  input_shape: [ 6 ]
  layers {
    name: "hidden"
    dense { units: 9 }
  }
  layers {
    name: "drop"
    dropout { rate: 0.5 }
  }
  layers {
    name: "z"
    noise { shape: 4 }
  }
  layers {
    name: "from_noise"
    dense { units: 4 }
    inputs: "z"
  }
  layers {
    name: "scores"
    dense { units: 4 }
    inputs: "drop"
  }
  layers {
    name: "sum"
    add {}
    inputs: [ "scores", "from_noise" ]
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

const std::vector<const char*>& Models() {
  static const std::vector<const char*> models = {kDense,       kLeNet,     kResidual, kRegression,
                                                  kWideAndDeep, kSequences, kStates};
  return models;
}

ReducerOptions OptionsOf(int towers, size_t kind) {
  ReducerOptions options{.towers = towers};
  if (kind % 2 == 0) options.batch_norm_updates = JobDef::EVERY_TOWER;
  if (kind % 4 == 1) options.clipping.set_value(0.01f);
  if (kind % 4 == 2) options.clipping.set_norm(0.02f);
  if (kind % 4 == 3) options.clipping.set_global_norm(0.05f);
  return options;
}

absl::StatusOr<std::unique_ptr<TowerGroup>> MakeGroup(const ModelGraph& graph,
                                                      const TowerDevices& devices,
                                                      const OpTable& ops,
                                                      const ReducerOptions& reducer,
                                                      std::vector<int64_t> smaller_batches) {
  return TowerGroup::Create(graph, devices, ops,
                            {.batch_per_tower = kBatch,
                             .smaller_batches = std::move(smaller_batches),
                             .reducer = reducer});
}

absl::StatusOr<std::vector<Tensor>> TrainStep(TowerGroup* group, const ModelGraph& graph, int step,
                                              Tables tables) {
  const int64_t size = step % 2 == 0 ? kBatch : kSmallerBatch;
  std::vector<Batch> batches;
  for (int tower = 0; tower < group->size(); ++tower) {
    batches.push_back(BatchOf(graph, size, (step * group->size() + tower) * kBatch + step));
  }
  Operands operands(graph);
  for (Tensor& variable : operands.variables) {
    for (float& value : variable.as<float>()) value *= 1 + 0.01f * static_cast<float>(step);
  }
  const auto train = [&](const VariableValues& values,
                         std::span<const MutableTensorView> gradients) {
    return group
        ->Train(batches, values, gradients, static_cast<uint64_t>(step + 1),
                [](std::span<const int>) {})
        .status();
  };
  if (tables == Tables::kWhole) {
    const absl::Status trained = train({operands.variable_views}, operands.gradient_views);
    if (!trained.ok()) return trained;
    return std::move(operands.gradients);
  }
  BatchRows rows(graph);
  rows.Collect(batches);
  const PartOperands part(graph, &operands, rows.rows());
  const absl::Status trained = train({part.views, rows.rows()}, part.gradient_views);
  if (!trained.ok()) return trained;
  for (size_t v = 0, table = 0; v < graph.variables().size(); ++v) {
    if (!graph.variables()[v].sparse) continue;
    operands.gradients[v] = part.tables[2 * table++ + 1].Clone();
  }
  return std::move(operands.gradients);
}

absl::StatusOr<std::vector<Tensor>> Train(
    TowerGroup* group, const ModelGraph& graph, int towers, int variant,
    const std::function<void(int variable, const Tensor& gradient)>& announced,
    const TensorMaker& make_gradient) {
  std::vector<Batch> batches;
  for (int t = 0; t < towers; ++t) {
    batches.push_back(BatchOf(graph, kBatch, (variant * towers + t) * kBatch));
  }
  Operands operands(graph, make_gradient);
  const auto ready = [&](std::span<const int> variables) {
    if (announced == nullptr) return;
    for (const int variable : variables) announced(variable, operands.gradients[variable]);
  };
  const absl::StatusOr<float> loss =
      group->Train(batches, {operands.variable_views}, operands.gradient_views, 7, ready);
  if (!loss.ok()) return loss.status();
  return std::move(operands.gradients);
}

std::vector<Gradients> TrainVariants(TowerGroup* group, const ModelGraph& graph, int towers,
                                     const TensorMaker& make_gradient) {
  std::vector<Gradients> all;
  for (int variant = 0; variant < kVariants; ++variant) {
    all.push_back(*Train(group, graph, towers, variant, nullptr, make_gradient));
  }
  return all;
}

bool AreSame(const Gradients& a, const Gradients& b) {
  for (size_t v = 0; v < a.size(); ++v) {
    if (!SameBits(a[v], b[v])) return false;
  }
  return true;
}

double LargestDifference(const Gradients& wanted, const Gradients& got) {
  double largest = 0;
  for (size_t v = 0; v < wanted.size(); ++v) {
    const auto values = wanted[v].as<float>();
    double magnitude = 1e-30;
    for (const float value : values) magnitude = std::max<double>(magnitude, std::abs(value));
    for (size_t i = 0; i < values.size(); ++i) {
      const double difference = double{values[i]} - double{got[v].as<float>()[i]};
      largest = std::max(largest, std::abs(difference) / magnitude);
    }
  }
  return largest;
}

}  // namespace lockstep::worker
