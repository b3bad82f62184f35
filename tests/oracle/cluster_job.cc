#include "tests/oracle/cluster_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"
#include "tests/oracle/initial_checkpoint.h"
#include "tests/oracle/numbers.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

const Command kChief = [] {
  Command command;
  command.set_job(1);
  command.set_term(1);
  return command;
}();

ps::WorkerIdentity IdentityOf(uint32_t worker) {
  return {.job = kChief.job(),
          .epoch = Epoch(1),
          .worker = WorkerIndex(worker),
          .incarnation = Incarnation(worker + 1)};
}

// The extents of nested lists.
void AddDims(const json& nested, VariableSpec* spec) {
  if (!nested.is_array()) return;
  spec->add_dims(static_cast<int64_t>(nested.size()));
  AddDims(nested.at(0), spec);
}

Placement PlacementOf(const json& initial, uint32_t num_shards) {
  Placement placement;
  placement.set_shards(num_shards);
  for (const auto& [name, values] : initial.items()) {
    const auto id = static_cast<uint32_t>(placement.variables_size());
    VariableSpec* spec = placement.add_variables();
    spec->set_id(id);
    spec->set_name(name);
    spec->set_dtype(FLOAT32);
    AddDims(values, spec);
    spec->set_shard(id % num_shards);
    spec->set_trainable(true);
  }
  return placement;
}

absl::StatusOr<OptimizerDef> OptimizerOf(const json& script) {
  const std::string name = script.at("optimizer");
  const json& hyper = script.at("hyper_parameters");
  OptimizerDef optimizer;
  if (name == "sgd") {
    optimizer.mutable_sgd();
  } else if (name == "momentum") {
    optimizer.mutable_momentum()->set_momentum(hyper.at("momentum"));
  } else if (name == "adam") {
    OptimizerDef::Adam* adam = optimizer.mutable_adam();
    adam->set_beta1(hyper.at("beta1"));
    adam->set_beta2(hyper.at("beta2"));
    adam->set_epsilon(hyper.at("epsilon"));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no cluster trains with \"", name, "\""));
  }
  return optimizer;
}

}  // namespace

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
  *plan.mutable_command() = kChief;
  *plan.mutable_placement() = placement_;
  LOCKSTEP_ASSIGN_OR_RETURN(*plan.mutable_optimizer(), OptimizerOf(script));
  plan.set_token_policy(FIFO);
  plan.set_total_num_replicas(static_cast<uint32_t>(workers_.size()));
  plan.set_replicas_to_aggregate(required_);
  plan.set_init_tokens(script.at("num_init_tokens"));
  plan.set_restore_from(checkpoint);
  ps::View view{.command = kChief, .epoch = Epoch(1)};
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
    shard->Grant({.command = kChief,
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
      LOCKSTEP_RETURN_IF_ERROR(shards_[0]->CommitStep(kChief, open_, /*last=*/false).status());
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
  ps::PushOrder order{.worker = IdentityOf(worker),
                      .push_seq = PushSeq(workers_[worker].runs),
                      .local_step = workers_[worker].local_step};
  std::vector<Tensor> values;
  ReceivedTensors::Segments segments;
  for (const VariableSpec& spec : placement_.variables()) {
    if (spec.shard() != shard) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(spec));
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor value,
                              TensorOf(type.dtype, type.shape, Flatten(gradients.at(spec.name()))));
    order.pieces.push_back({.variable = VariableId(spec.id()),
                            .dtype = type.dtype,
                            .shape = type.shape,
                            .size = value.num_bytes()});
    values.push_back(std::move(value));
    segments.push_back(values.back().view().bytes());
  }
  order.tensors = ReceivedTensors(std::move(segments));
  return shards_[shard]->Push(order).status();
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
