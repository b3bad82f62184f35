// What a plan takes from the job's losses, or from its one optimizer.
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

// Tells each variable, in all its parts, which loss trains it, and when it is that one's turn.
// `losses` as AssignLosses returns them.
void SetTurns(const JobDef& job, const ModelGraph& graph, absl::Span<const uint32_t> losses,
              Placement* placement);

// Of each shard: which of its variables get gradients in a step.
std::vector<GradientTurns> TurnsOfShards(const Placement& placement);

// That of the step's loss, whose schedule counts the steps of all.
std::function<float(GlobalStep)> LearningRateOf(const JobDef& job);

// The kind, as in a manifest: "rmsprop", or "generator: rmsprop, discriminator: adam".
std::string OptimizerKindOf(const JobDef& job);

}  // namespace lockstep::chief
