// What the variables of an epoch are made of: the chief's CreateVariables request and what follows
// from it. Constant.
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
  // Where `sync` or `transport` is absent, the older fields of the request stand for it.
  explicit EpochConfig(CreateVariablesRequest request);

  // INVALID_ARGUMENT naming the field, what was expected and what came.
  absl::Status Check() const;

  const Placement& placement() const { return request_.placement(); }
  // One, or one for each of several losses.
  size_t num_optimizers() const { return std::max(request_.losses_size(), 1); }
  // Of the losses, counted from 0.
  const OptimizerDef& optimizer(size_t loss) const;
  // "optimizer", or "optimizer/generator": scalars in checkpoints begin so.
  std::string OptimizerName(size_t loss) const;
  const SyncDef& sync() const { return request_.sync(); }
  const TransportDef& transport() const { return request_.transport(); }
  uint64_t seed() const { return request_.seed(); }
  const std::string& restore_from() const { return request_.restore_from(); }
  GlobalStep start_step() const { return GlobalStep(request_.start_step()); }
  uint32_t total_num_replicas() const { return request_.total_num_replicas(); }

  // The primary sends values, slots and scalars: they begin as zeros.
  bool awaits_state() const { return request_.awaits_state(); }
  // Another ps keeps a copy of the shard.
  bool has_copies() const { return sync().ps_replicas() > 0; }
  // Workers keep variables of the job.
  bool is_replicated() const;
  // Of such a job: a step needs a gradient of each member, however few there are.
  bool shrinks_with_members() const { return is_replicated() && sync().quorum_policy() == SHRINK; }
  // Its replicas are those of replica views.
  bool is_elastic() const { return sync().has_min_replicas(); }
  bool is_asynchronous() const { return sync().has_asynchronous(); }
  bool is_fifo() const { return sync().token_policy() == FIFO; }
  // Of an asynchronous job; nullopt: none.
  std::optional<int64_t> max_staleness() const;
  std::optional<GlobalStep> end_step() const;
  // After Check.
  uint32_t replicas_to_aggregate() const;
  // After Check: of each variable, that a step needs when the job begins. Where workers come and go
  // there may be fewer than it is to need one day: a view with more raises it.
  uint32_t gradients_of_step() const;
  // `end`: of this shard, in an asynchronous job.
  CountRule count_rule(std::optional<GlobalStep> end) const;
  bool refuses_non_finite() const { return sync().non_finite() == REFUSE_NON_FINITE; }
  // Values lie in memory that workers of this host can look at.
  bool shares_values() const { return transport().shared_memory() != TransportDef::OFF; }
  // A gradient stays unchanged, where its worker has it, until the step is over.
  bool may_borrow() const { return !is_asynchronous() && !is_fifo(); }
  // Ranges of a variable may be applied before the rest has come: each of the replicas is needed,
  // and nothing that one sends can be refused or dropped later.
  bool applies_early_chunks() const;

  // Equal for requests that make the same variables. Leaves out what a chief that takes over may
  // have changed since: clipping, transport, where the variables start from, what becomes of a
  // step that lacks replicas, and the learning rate of a synchronous job, which each grant brings.
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
