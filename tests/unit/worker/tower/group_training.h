// Steps of a TowerGroup on small models with every kind of op, on any device.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/unit/worker/tower/models.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {

inline constexpr int64_t kSmallerBatch = 3;
inline constexpr int kVariants = 2;  // of the data: a step leaves behind what the next one has not

// The kinds of op that the models of models.h lack.
extern const char kDense[];
// Dropout, and noise that needs no input.
extern const char kRandom[];

// The first, and those of models.h.
const std::vector<const char*>& Models();

// Reductions and clippings of every kind, in turn.
ReducerOptions OptionsOf(int towers, size_t kind);

absl::StatusOr<std::unique_ptr<TowerGroup>> MakeGroup(const ModelGraph& graph,
                                                      const TowerDevices& devices,
                                                      const OpTable& ops,
                                                      const ReducerOptions& reducer = {},
                                                      std::vector<int64_t> smaller_batches = {});

enum class Tables { kWhole, kRows };  // what values hold of them: all, or what the step looks up

// The gradients of a step that has data, values and random numbers of its own. Every second one has
// a batch of kSmallerBatch.
absl::StatusOr<std::vector<Tensor>> TrainStep(TowerGroup* group, const ModelGraph& graph, int step,
                                              Tables tables = Tables::kWhole);

// The gradients of one step; `announced` gets each when it is final.
absl::StatusOr<std::vector<Tensor>> Train(
    TowerGroup* group, const ModelGraph& graph, int towers, int variant,
    const std::function<void(int variable, const Tensor& gradient)>& announced = nullptr,
    const TensorMaker& make_gradient = OnHeap);

using Gradients = std::vector<Tensor>;

// Those of one step on each variant of the data.
std::vector<Gradients> TrainVariants(TowerGroup* group, const ModelGraph& graph, int towers,
                                     const TensorMaker& make_gradient = OnHeap);

// All tensors, equal to the last bit.
bool AreSame(const Gradients& a, const Gradients& b);
// Of float32 gradients, relative to the largest magnitude of each of `wanted`.
double LargestDifference(const Gradients& wanted, const Gradients& got);

}  // namespace lockstep::worker
