// What follows from a job's plan before anything runs: when it evaluates and saves, what a step
// needs, and how its shards read. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "chief/job/run_record.h"
#include "chief/leases/evaluation_queue.h"
#include "chief/membership/quorum.h"
#include "chief/membership/replica_rules.h"
#include "chief/plan/plan.h"
#include "chief/sync/milestones.h"

namespace lockstep::chief {

// As the model names them: the parts of a variable are one, the loss is none. Of each shard, and of
// the whole model, whose parts may be on several.
std::vector<uint32_t> CountVariables(const JobPlan& plan);
uint32_t CountModelVariables(const JobPlan& plan);

// Nothing without a test set.
std::optional<EvaluationQueue> MakeEvaluationQueue(const JobPlan& plan);
Milestones EvaluateAt(const JobPlan& plan);
Milestones SaveAt(const JobPlan& plan);

QuorumRules QuorumRulesOf(const JobPlan& plan);
// Of a step that begins now, as far as its record says.
uint32_t ReplicasToAggregate(const JobPlan& plan, const RunRecord& record);
// Of an elastic job.
ReplicaRules ReplicaRulesOf(const JobPlan& plan);

}  // namespace lockstep::chief
