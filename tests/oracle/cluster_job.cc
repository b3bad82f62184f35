#include "tests/oracle/cluster_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/initial_checkpoint.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/shard_setup.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::oracle {

using nlohmann::json;

absl::StatusOr<std::unique_ptr<ClusterJob>> ClusterJob::Start(const json& script,
                                                              uint32_t num_shards) {
  std::unique_ptr<ClusterJob> job(new ClusterJob(script, num_shards));
  const test::TemporaryFolder folder;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string checkpoint,
                            WriteInitialCheckpoint(folder.path(), script));
  LOCKSTEP_RETURN_IF_ERROR(job->CreateVariables(script, checkpoint));
  job->Grant(GlobalStep(0));
  job->Grant(GlobalStep(1));
  LOCKSTEP_RETURN_IF_ERROR(job->error_);
  return job;
}

ClusterJob::ClusterJob(const json& script, uint32_t num_shards)
    : placement_(PlacementOf(script.at("initial"), num_shards)),
      required_(script.at("replicas_to_aggregate")),
      learning_rate_(script.at("learning_rate")),
      workers_(script.at("total_num_replicas").get<uint32_t>()) {
  for (uint32_t shard = 0; shard < num_shards; ++shard) {
    shards_.push_back(std::make_unique<ps::Shard>(ps::ShardOptions()));
  }
}

ClusterJob::~ClusterJob() {
  for (const auto& shard : shards_) shard->Stop();
}

absl::Status ClusterJob::CreateVariables(const json& script, const std::string& checkpoint) {
  CreateVariablesRequest plan;
  *plan.mutable_command() = ChiefOfScript();
  *plan.mutable_placement() = placement_;
  LOCKSTEP_ASSIGN_OR_RETURN(*plan.mutable_optimizer(), OptimizerOf(script));
  plan.set_token_policy(FIFO);
  plan.set_total_num_replicas(static_cast<uint32_t>(workers_.size()));
  plan.set_replicas_to_aggregate(required_);
  plan.set_init_tokens(script.at("num_init_tokens"));
  plan.set_restore_from(checkpoint);
  ps::View view{.command = ChiefOfScript(), .epoch = Epoch(1)};
  for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
    view.members.push_back({WorkerIndex(worker), IdentityOf(worker).incarnation});
  }
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    view.shard = ShardIndex(shard);
    LOCKSTEP_RETURN_IF_ERROR(shards_[shard]->SetView(view).status());
    LOCKSTEP_RETURN_IF_ERROR(shards_[shard]->CreateVariables(plan).status());
  }
  return absl::OkStatus();
}

void ClusterJob::Grant(GlobalStep step) {
  for (const auto& shard : shards_) {
    shard->Grant({.command = ChiefOfScript(),
                  .step = step,
                  .required = required_,
                  .learning_rate = learning_rate_,
                  .commit = shards_.size() == 1},
                 [this, step](const absl::StatusOr<ps::ClosedStep>& closed) {
                   if (closed.ok()) {
                     ++closed_[step];
                   } else {
                     error_.Update(closed.status());
                   }
                 });
  }
}

absl::Status ClusterJob::GoOn() {
  while (closed_[open_] == shards_.size()) {
    if (shards_.size() > 1) {
      LOCKSTEP_RETURN_IF_ERROR(
          shards_[0]->CommitStep(ChiefOfScript(), open_, /*last=*/false).status());
    }
    open_ = open_.next();
    Grant(open_.next());
  }
  return error_;
}

absl::Status ClusterJob::Run(uint32_t number, const json& gradients) {
  if (number >= workers_.size() || workers_[number].token.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", number, " cannot run"));
  }
  Worker& worker = workers_[number];
  ++worker.runs;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    LOCKSTEP_RETURN_IF_ERROR(Push(number, shard, gradients));
    LOCKSTEP_RETURN_IF_ERROR(GoOn());
  }
  shards_[0]->DequeueToken({IdentityOf(number), DequeueSeq(worker.runs)},
                           worker.token.emplace().done());
  return absl::OkStatus();
}

absl::Status ClusterJob::Push(uint32_t worker, uint32_t shard, const json& gradients) {
  ScriptPush push(IdentityOf(worker), PushSeq(workers_[worker].runs), workers_[worker].local_step);
  for (const VariableSpec& spec : placement_.variables()) {
    if (spec.shard() != shard) continue;
    LOCKSTEP_RETURN_IF_ERROR(push.Add(spec, Flatten(gradients.at(spec.name()))));
  }
  return push.PushTo(shards_[shard].get());
}

std::vector<uint32_t> ClusterJob::TakeFinished() {
  std::vector<uint32_t> finished;
  for (uint32_t number = 0; number < workers_.size(); ++number) {
    Worker& worker = workers_[number];
    if (!worker.token.has_value() || !worker.token->answered()) continue;
    const absl::StatusOr<ps::Token> token = worker.token->Wait();
    worker.token.reset();
    error_.Update(token.status());
    if (token.ok()) worker.local_step = token->step;
    finished.push_back(number);
  }
  return finished;
}

std::vector<uint32_t> ClusterJob::Waiting() const {
  std::vector<uint32_t> waiting;
  for (uint32_t number = 0; number < workers_.size(); ++number) {
    if (workers_[number].token.has_value()) waiting.push_back(number);
  }
  return waiting;
}

std::vector<int64_t> ClusterJob::LocalSteps() const {
  std::vector<int64_t> steps;
  for (const Worker& worker : workers_) steps.push_back(worker.local_step.value());
  return steps;
}

absl::StatusOr<std::vector<double>> ClusterJob::Read(const std::string& variable) {
  for (const VariableSpec& spec : placement_.variables()) {
    if (spec.name() != variable) continue;
    const GlobalStep version(GlobalStepNow());
    Answer<ps::PullResult> answer;
    shards_[spec.shard()]->Pull({IdentityOf(0), version, {{.variable = VariableId(spec.id())}}},
                                answer.done());
    if (!answer.answered()) {
      return absl::InternalError(
          absl::StrCat("\"", variable, "\" has no version ", version.value()));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const ps::PullResult result, answer.Wait());
    if (result.version != version) {
      return absl::InternalError(absl::StrCat("\"", variable, "\": expected version ",
                                              version.value(), ", got ", result.version.value()));
    }
    return ElementsOf(result.pieces.at(0).owner->view());
  }
  return absl::InvalidArgumentError(absl::StrCat("no variable is called \"", variable, "\""));
}

}  // namespace lockstep::oracle
