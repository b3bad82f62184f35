// The values that a plan derives from the job's losses, or from its only optimizer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/model/graph.h"
#include "common/turns/gradient_turns.h"
#include "proto/job.pb.h"
#include "proto/tensor.pb.h"

namespace lockstep::chief {

// Sets the loss that trains each variable, in all its parts, and the turns of the losses. `losses`
// as AssignLosses returns them.
void SetTurns(const JobDef& job, const ModelGraph& graph, absl::Span<const uint32_t> losses,
              Placement* placement);

// By shard: the turns in which its variables get gradients.
std::vector<GradientTurns> TurnsOfShards(const Placement& placement);

// Returns the learning rate of a step's loss. Its schedule counts the steps of all losses.
std::function<float(GlobalStep)> LearningRateOf(const JobDef& job);

// The kind, as in a manifest: "rmsprop", or "generator: rmsprop, discriminator: adam".
std::string OptimizerKindOf(const JobDef& job);

}  // namespace lockstep::chief
