// EpochConfig is the configuration of an epoch's variables: the chief's CreateVariables request,
// and the values derived from it. Constant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "proto/ps.pb.h"
#include "ps/step/step_machine.h"

namespace lockstep::ps {

class EpochConfig {
 public:
  // If `sync` or `transport` is absent, the older fields of the request replace it.
  explicit EpochConfig(CreateVariablesRequest request);

  // INVALID_ARGUMENT naming the field, the expected and the received value.
  absl::Status Check() const;

  const Placement& placement() const { return request_.placement(); }
  // One, or one for each of several losses.
  size_t num_optimizers() const { return std::max(request_.losses_size(), 1); }
  // `loss` counts from 0.
  const OptimizerDef& optimizer(size_t loss) const;
  // "optimizer", or "optimizer/generator": the prefix of scalars in checkpoints.
  std::string OptimizerName(size_t loss) const;
  const SyncDef& sync() const { return request_.sync(); }
  const TransportDef& transport() const { return request_.transport(); }
  uint64_t seed() const { return request_.seed(); }
  const std::string& restore_from() const { return request_.restore_from(); }
  GlobalStep start_step() const { return GlobalStep(request_.start_step()); }
  uint32_t total_num_replicas() const { return request_.total_num_replicas(); }

  // True if the primary sends values, slots and scalars; they begin as zeros.
  bool awaits_state() const { return request_.awaits_state(); }
  // True if another ps keeps a copy of the shard.
  bool has_copies() const { return sync().ps_replicas() > 0; }
  // True if workers keep variables of the job.
  bool is_replicated() const;
  // In such a job: a step needs one gradient of each present member, for any number of them.
  bool shrinks_with_members() const { return is_replicated() && sync().quorum_policy() == SHRINK; }
  // True if the replicas are those of replica views.
  bool is_elastic() const { return sync().has_min_replicas(); }
  bool is_asynchronous() const { return sync().has_asynchronous(); }
  bool is_fifo() const { return sync().token_policy() == FIFO; }
  // For an asynchronous job; nullopt: none.
  std::optional<int64_t> max_staleness() const;
  std::optional<GlobalStep> end_step() const;
  // After Check.
  uint32_t replicas_to_aggregate() const;
  // After Check: the gradients of each variable that a step needs when the job begins. In an
  // elastic job a later view with more replicas may raise the number.
  uint32_t gradients_of_step() const;
  // `end`: the end of this shard in an asynchronous job.
  CountRule count_rule(std::optional<GlobalStep> end) const;
  bool refuses_non_finite() const { return sync().non_finite() == REFUSE_NON_FINITE; }
  // True if values are in memory that workers of this host can read.
  bool shares_values() const { return transport().shared_memory() != TransportDef::OFF; }
  // True if a gradient stays unchanged in its worker's memory until the step is over.
  bool may_borrow() const { return !is_asynchronous() && !is_fifo(); }
  // True if ranges of a variable may be applied before the rest arrives: every replica is needed,
  // and no part of its gradient can be refused or dropped later.
  bool applies_early_chunks() const;

  // INVALID_ARGUMENT: the worker has no such tower that trains by itself. The shard keeps something
  // for each that pushes or pulls.
  absl::Status CheckTower(const WorkerIdentity& worker) const;

  // Equal for requests that make the same variables. Leaves out the settings that a chief that
  // takes over may change: clipping, transport, the start of the variables, the quorum policy, and
  // the learning rate of a synchronous job, which each grant brings.
  std::string Fingerprint() const;

 private:
  absl::Status CheckReplicas() const;
  absl::Status CheckSteps() const;
  absl::Status CheckAsynchronous() const;
  absl::Status CheckLosses() const;
  absl::Status CheckState() const;

  CreateVariablesRequest request_;
};

}  // namespace lockstep::ps
