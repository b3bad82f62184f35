// Rules derived from a job's plan: the steps of evaluations and saves, the gradients a step needs,
// and the number of variables. Pure.
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

// Counts variables as the model names them, of each shard and of the whole model. The parts of a
// variable, which may be on several shards, count as one. The loss does not count.
std::vector<uint32_t> CountVariables(const JobPlan& plan);
uint32_t CountModelVariables(const JobPlan& plan);

// nullopt without a test set.
std::optional<EvaluationQueue> MakeEvaluationQueue(const JobPlan& plan);
Milestones EvaluateAt(const JobPlan& plan);
Milestones SaveAt(const JobPlan& plan);

QuorumRules QuorumRulesOf(const JobPlan& plan);
// Gradients that a step needs if it begins now, according to `record`.
uint32_t ReplicasToAggregate(const JobPlan& plan, const RunRecord& record);
// Examples of a step that begins now. The global batch of an elastic job does not change with its
// workers.
double ExamplesPerStep(const JobPlan& plan, const RunRecord& record);
// For an elastic job.
ReplicaRules ReplicaRulesOf(const JobPlan& plan);

}  // namespace lockstep::chief
