#include "ps/shard/epoch_config.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {
namespace {

SyncDef SyncOfOlderFields(const CreateVariablesRequest& request) {
  SyncDef sync;
  sync.set_token_policy(request.token_policy());
  sync.set_replicas_to_aggregate(request.replicas_to_aggregate());
  sync.set_init_tokens(request.init_tokens());
  sync.set_non_finite(request.non_finite());
  if (request.asynchronous()) sync.mutable_asynchronous();
  if (request.asynchronous() && request.has_max_staleness()) {
    sync.mutable_asynchronous()->set_max_staleness(request.max_staleness());
  }
  return sync;
}

}  // namespace

EpochConfig::EpochConfig(CreateVariablesRequest request) : request_(std::move(request)) {
  if (!request_.has_sync()) *request_.mutable_sync() = SyncOfOlderFields(request_);
  if (!request_.has_transport()) {
    request_.mutable_transport()->set_shared_memory(request_.shared_memory() ? TransportDef::COPY
                                                                             : TransportDef::OFF);
  }
  SyncDef* sync = request_.mutable_sync();
  if (!sync->has_replicas_to_aggregate()) {
    sync->set_replicas_to_aggregate(is_asynchronous() ? 1 : total_num_replicas());
  }
  if (!sync->has_init_tokens()) sync->set_init_tokens(-1);
}

absl::Status EpochConfig::Check() const {
  LOCKSTEP_RETURN_IF_ERROR(CheckReplicas());
  LOCKSTEP_RETURN_IF_ERROR(CheckSteps());
  LOCKSTEP_RETURN_IF_ERROR(CheckAsynchronous());
  LOCKSTEP_RETURN_IF_ERROR(CheckState());
  return CheckLosses();
}

const OptimizerDef& EpochConfig::optimizer(size_t loss) const {
  return request_.losses().empty() ? request_.optimizer()
                                   : request_.losses(static_cast<int>(loss)).optimizer();
}

std::string EpochConfig::OptimizerName(size_t loss) const {
  if (request_.losses().empty()) return "optimizer";
  return absl::StrCat("optimizer/", request_.losses(static_cast<int>(loss)).name());
}

absl::Status EpochConfig::CheckLosses() const {
  if (request_.losses_size() != placement().turns_size()) {
    return absl::InvalidArgumentError(absl::StrCat("losses: expected ", placement().turns_size(),
                                                   ", one for each of placement.turns, got ",
                                                   request_.losses_size()));
  }
  if (request_.losses().empty() || !is_asynchronous()) return absl::OkStatus();
  return absl::InvalidArgumentError("losses: expected none in an asynchronous job");
}

absl::Status EpochConfig::CheckState() const {
  const bool may_await = has_copies() && !is_asynchronous() && !is_replicated();
  if (!awaits_state() || may_await) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "awaits_state: expected a job with sync.ps_replicas, synchronous and not replicated");
}

absl::Status EpochConfig::CheckReplicas() const {
  const int64_t needed = sync().replicas_to_aggregate();
  if (needed <= 0 || needed > std::numeric_limits<uint32_t>::max() || total_num_replicas() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("expected replicas, got replicas_to_aggregate ",
                                                   needed, " of total_num_replicas ",
                                                   total_num_replicas()));
  }
  if (is_fifo() || is_elastic() || needed <= total_num_replicas()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("PER_REPLICA cannot aggregate ", needed, " of ",
                                                 total_num_replicas(),
                                                 " replicas: each counts once per step"));
}

absl::Status EpochConfig::CheckSteps() const {
  for (const auto& [field, step] : {std::pair("start_step", request_.start_step()),
                                    std::pair("end_step", request_.end_step())}) {
    if (step >= 0 && step <= limits::kMaxStep) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected a step from 0 to ", limits::kMaxStep, ", got ", step));
  }
  return absl::OkStatus();
}

absl::Status EpochConfig::CheckAsynchronous() const {
  if (!is_asynchronous()) {
    if (!request_.has_max_staleness() && !end_step().has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError("max_staleness and end_step: only of an asynchronous job");
  }
  if (max_staleness().value_or(0) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_staleness: expected 0 or more, got ", *max_staleness()));
  }
  if (!end_step().has_value() || *end_step() > start_step()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("end_step: expected more than start_step ",
                                                 start_step().value(), ", got ",
                                                 end_step()->value()));
}

std::optional<int64_t> EpochConfig::max_staleness() const {
  if (!sync().asynchronous().has_max_staleness()) return std::nullopt;
  return sync().asynchronous().max_staleness();
}

std::optional<GlobalStep> EpochConfig::end_step() const {
  if (request_.end_step() == 0) return std::nullopt;
  return GlobalStep(request_.end_step());
}

bool EpochConfig::is_replicated() const {
  return std::ranges::any_of(placement().variables(), &VariableSpec::replicated);
}

uint32_t EpochConfig::replicas_to_aggregate() const {
  return static_cast<uint32_t>(sync().replicas_to_aggregate());
}

uint32_t EpochConfig::gradients_of_step() const {
  const uint32_t needed = replicas_to_aggregate();
  return is_elastic() ? std::min(needed, total_num_replicas()) : needed;
}

CountRule EpochConfig::count_rule(std::optional<GlobalStep> end) const {
  if (!is_asynchronous()) {
    return is_fifo() ? CountRule::kEveryGradient : CountRule::kOncePerReplica;
  }
  CountRule rule = CountRule::kOneByOne;
  rule.max_staleness = max_staleness();
  rule.end = end;
  return rule;
}

bool EpochConfig::applies_early_chunks() const {
  // What is made of a part would have to wait for the copy, too.
  return request_.every_replica_counts() && may_borrow() && !is_elastic() && !has_copies() &&
         replicas_to_aggregate() == total_num_replicas() && !refuses_non_finite();
}

absl::Status EpochConfig::CheckTower(const WorkerIdentity& worker) const {
  if (worker.tower == 0) return absl::OkStatus();
  if (is_asynchronous() && worker.tower < limits::kMaxTowers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "worker.tower of worker ", worker.worker.value(), ": expected ",
      is_asynchronous() ? absl::StrCat("0 to ", limits::kMaxTowers - 1)
                        : "0, since only an asynchronous job's towers train by themselves",
      ", got ", worker.tower));
}

std::string EpochConfig::Fingerprint() const {
  std::string optimizers;
  for (size_t loss = 0; loss < num_optimizers(); ++loss) {
    OptimizerDef of = optimizer(loss);
    if (!is_asynchronous()) of.clear_learning_rate();
    of.clear_clipping();
    absl::StrAppend(&optimizers, OptimizerName(loss), ":", of.SerializeAsString(), "|");
  }
  SyncDef sync = request_.sync();
  sync.clear_quorum_policy();
  sync.clear_init_tokens();
  // Where workers come and go, the number of them that the next chief knows may be another one.
  if (is_elastic()) sync.clear_replicas_to_aggregate();
  const uint32_t replicas = is_elastic() ? 0 : total_num_replicas();
  if (is_asynchronous()) sync.mutable_asynchronous()->clear_scale_gradient();
  return absl::StrCat(placement().SerializeAsString(), "|", optimizers, sync.SerializeAsString(),
                      "|", seed(), "|", replicas, "|", request_.end_step(), "|",
                      request_.every_replica_counts());
}

}  // namespace lockstep::ps
