#include "worker/service/worker_job.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/exit_code.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/client/ps_transport.h"
#include "common/job/example_spec.h"
#include "common/log/log.h"
#include "worker/ops/cpu/ops.h"
#include "worker/service/check_registration.h"
#include "worker/strategy/parameter_server/asynchronous_strategy.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLookForStop = absl::Milliseconds(50);
// For the chief to hear that this worker leaves. Otherwise the lease ends, and says the same.
constexpr absl::Duration kGoodbye = absl::Seconds(1);

WorkerIdentity IdentityOf(const WorkerJobOptions& options) {
  WorkerIdentity identity;
  identity.set_job(options.registration.job_id());
  identity.set_epoch(options.registration.epoch());
  identity.set_worker(options.worker);
  identity.set_incarnation(options.incarnation);
  return identity;
}

int TowersOf(const JobDef& job) { return static_cast<int>(std::max<int64_t>(job.towers(), 1)); }

// Whether the chief's placement is of the model that this worker builds from the same file.
bool IsOf(const VariableLayout& layout, const ModelGraph& graph) {
  return std::ranges::equal(
      layout.variables(), graph.variables(),
      [](const WholeVariable& placed, const ModelVariable& variable) {
        return placed.name == variable.name && placed.dtype == variable.dtype &&
               placed.shape == variable.shape && placed.trainable == variable.trainable &&
               placed.sparse == variable.sparse && placed.frozen == variable.frozen;
      });
}

// As which tensors travel, where they do.
DType WireTypeOf(const JobDef& job) {
  switch (job.transport().wire_type()) {
    case BFLOAT16:
      return DType::kBFloat16;
    case FLOAT16:
      return DType::kFloat16;
    default:
      return DType::kFloat32;
  }
}

bool HasTestFiles(const DataDef& data) {
  return data.has_idx() ? !data.idx().test_images().empty() : !data.csv().test().empty();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerJob>> WorkerJob::Create(WorkerJobOptions options,
                                                             ChiefClient* chief) {
  std::unique_ptr<WorkerJob> run(new WorkerJob(std::move(options), chief));
  run->StartHeartbeat();
  if (absl::Status status = run->Prepare(); !status.ok()) {
    run->ReportFailure(status);
    return status;
  }
  return run;
}

WorkerJob::WorkerJob(WorkerJobOptions options, ChiefClient* chief)
    : options_(std::move(options)),
      chief_(chief),
      identity_(IdentityOf(options_)),
      timer_(options_.queue) {}

WorkerJob::~WorkerJob() {
  // The evaluator tells the heartbeat of results and the heartbeat asks the evaluator for them: the
  // evaluator goes first, out of the heartbeat's sight.
  std::unique_ptr<Evaluator> evaluator;
  {
    absl::MutexLock lock(&mutex_);
    evaluator = std::move(evaluator_);
  }
  for (const auto& shard : shards_) shard->Cancel();
  evaluator.reset();
  heartbeat_.reset();
}

void WorkerJob::StartHeartbeat() {
  HeartbeatOptions options;
  options.job_id = identity_.job();
  options.worker = identity_.worker();
  options.incarnation = identity_.incarnation();
  options.patience = options_.patience;
  heartbeat_ = std::make_unique<Heartbeat>(
      options, chief_, &progress_,
      Heartbeat::Callbacks{.results =
                               [this] {
                                 absl::MutexLock lock(&mutex_);
                                 return evaluator_ ? evaluator_->Results()
                                                   : std::vector<EvaluationResult>();
                               },
                           .reply =
                               [this](const HeartbeatReply& reply) {
                                 absl::MutexLock lock(&mutex_);
                                 if (evaluator_) evaluator_->SetLeases(reply.leases());
                               },
                           .end = [this](absl::Status status) { EndWith(std::move(status)); }});
}

absl::Status WorkerJob::Prepare() {
  const RegisterTaskReply& job = options_.registration;
  LOCKSTEP_RETURN_IF_ERROR(CheckRegistration(job, options_.worker, options_.ps_addresses.size()));
  progress_.StartStep(GlobalStep(job.start_step()));
  progress_.WaitFor("its own data");
  LOCKSTEP_ASSIGN_OR_RETURN(graph_, ModelGraph::Build(job.model()));
  LOCKSTEP_ASSIGN_OR_RETURN(layout_, VariableLayout::Create(job.placement()));
  if (!IsOf(layout_, graph_) || layout_.num_shards() != options_.ps_addresses.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the chief placed ", layout_.variables().size(), " variables on ", layout_.num_shards(),
        " ps; this worker's model has ", graph_.variables().size(), " and its cluster spec ",
        options_.ps_addresses.size(),
        " ps, or the variables differ. Remedy: run the "
        "same version everywhere"));
  }
  LOCKSTEP_RETURN_IF_ERROR(OpenData());
  LOCKSTEP_RETURN_IF_ERROR(MakeTowers());
  LOCKSTEP_RETURN_IF_ERROR(ConnectShards());
  if (test_set_ != nullptr) StartEvaluator();
  return absl::OkStatus();
}

absl::Status WorkerJob::MakeTowers() {
  const JobDef& job = options_.registration.job();
  TowerGroupOptions group;
  group.batch_per_tower = job.batch_per_tower();
  group.reducer.towers = TowersOf(job);
  group.reducer.clipping = job.optimizer().clipping();
  group.reducer.sum = job.sync().asynchronous().no_tower_scaling();
  group.delay = options_.delay;
  device_ = std::make_unique<CpuDevice>(std::max(1, options_.threads / group.reducer.towers));
  LOCKSTEP_ASSIGN_OR_RETURN(towers_, TowerGroup::Create(graph_, device_.get(), cpu::Ops(), group));
  return absl::OkStatus();
}

absl::Status WorkerJob::OpenData() {
  const JobDef& job = options_.registration.job();
  const ExampleSpec spec = ExampleSpecOf(graph_);
  PipelineOptions pipeline;
  pipeline.seed = job.seed();
  pipeline.replica = options_.worker;
  pipeline.num_replicas = options_.registration.total_num_replicas();
  pipeline.batch_per_tower = job.batch_per_tower();
  pipeline.towers = TowersOf(job);
  LOCKSTEP_ASSIGN_OR_RETURN(data_, Pipeline::Open(job.data(), spec, pipeline));
  if (!HasTestFiles(job.data())) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(test_set_, TestSet::Open(job.data(), spec));
  if (!test_set_->has_labels()) test_set_.reset();
  return absl::OkStatus();
}

void WorkerJob::MakeMemory(std::span<const int64_t> most_rows) {
  if (options_.registration.job().transport().shared_memory() == TransportDef::OFF) return;
  auto memory = GradientMemory::Create(GradientBuffers::NumBytes(layout_, most_rows));
  if (memory.ok()) {
    memory_ = *std::move(memory);
  } else {
    log::Info(absl::StrCat("shared memory unavailable, using gRPC: ", memory.status().message()));
  }
}

std::unique_ptr<TensorTransport> WorkerJob::Connect(size_t shard) {
  const std::string name = absl::StrCat("ps ", shard);
  return MakePsTransport(
      {.address = options_.ps_addresses[shard], .name = name, .queue = options_.queue},
      memory_.get(), [name](const absl::Status& shares) {
        log::Info(shares.ok() ? absl::StrCat("shares memory with ", name)
                              : absl::StrCat("shared memory with ", name,
                                             " unavailable, using gRPC: ", shares.message()));
      });
}

int64_t WorkerJob::Examples() const {
  const JobDef& job = options_.registration.job();
  return job.batch_per_tower() * TowersOf(job);
}

absl::Status WorkerJob::ConnectShards() {
  rows_ = std::make_unique<BatchRows>(graph_);
  const std::vector<int64_t> most_rows = rows_->MostRows(Examples());
  MakeMemory(most_rows);
  for (size_t shard = 0; shard < options_.ps_addresses.size(); ++shard) {
    shards_.push_back(Connect(shard));
    shard_pointers_.push_back(shards_.back().get());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(strategy_, MakeStrategy(most_rows));
  return absl::OkStatus();
}

ShardGroupOptions WorkerJob::ShardOptions() const {
  const JobDef& job = options_.registration.job();
  ShardGroupOptions options;
  options.session.identity = identity_;
  options.session.asynchronous = job.sync().has_asynchronous();
  options.token_per_replica =
      !options.session.asynchronous && job.sync().token_policy() == PER_REPLICA;
  options.values_in_place = job.transport().shared_memory() == TransportDef::MAP;
  options.session.wire_dtype = WireTypeOf(job);
  options.session.patience = options_.patience;
  for (size_t shard = 0; shard < options_.ps_addresses.size(); ++shard) {
    options.shard_names.push_back(
        absl::StrCat("ps ", shard, " (", options_.ps_addresses[shard], ")"));
  }
  return options;
}

absl::StatusOr<std::unique_ptr<UpdateStrategy>> WorkerJob::MakeStrategy(
    std::span<const int64_t> most_rows) {
  const RegisterTaskReply& registration = options_.registration;
  const ShardGroupResources resources{.shards = shard_pointers_, .timer = &timer_};
  if (registration.job().sync().has_asynchronous()) {
    return AsynchronousStrategy::Create(ShardOptions(), layout_, resources, most_rows,
                                        memory_.get());
  }
  return ParameterServerStrategy::Create({.shards = ShardOptions(),
                                          .first_step = GlobalStep(registration.start_step()),
                                          .max_steps = registration.max_steps()},
                                         layout_, resources, most_rows, memory_.get());
}

absl::Status WorkerJob::Train() {
  const RegisterTaskReply& registration = options_.registration;
  const JobDef& job = registration.job();
  StepRunnerOptions options;
  options.first_step = GlobalStep(registration.start_step());
  // Replicas of an asynchronous job are at no common step. One that comes later reads on about
  // where all of them together are.
  if (job.sync().has_asynchronous()) {
    options.first_step = GlobalStep(registration.start_step() / registration.total_num_replicas());
  }
  options.random_seed = MixSeeds(job.seed(), identity_.worker());
  options.timeline = options_.timeline;
  return StepRunner(options, layout_, strategy_.get(), towers_.get(), data_.get(), rows_.get(),
                    &progress_)
      .Run();
}

void WorkerJob::StartEvaluator() {
  EvaluatorOptions options;
  options.identity = identity_;
  const EvaluationDef& evaluation = options_.registration.job().evaluation();
  options.batch = evaluation.batch();
  options.averages = evaluation.use_averages();
  evaluation_device_ = std::make_unique<CpuDevice>(options_.threads);
  options.device = evaluation_device_.get();
  options.ops = &cpu::Ops();
  options.patience = options_.patience;
  auto evaluator =
      std::make_unique<Evaluator>(std::move(options), &graph_, &layout_, shard_pointers_, &timer_,
                                  test_set_.get(), [this] { heartbeat_->SendNow(); });
  absl::MutexLock lock(&mutex_);
  evaluator_ = std::move(evaluator);
}

absl::Status WorkerJob::Run(const MonotonicNotification* stop) {
  std::thread training([this] {
    const absl::Status status = Train();
    if (status.ok() || absl::IsCancelled(status)) return;
    ReportFailure(status);
    EndWith(status);
  });
  absl::Status end;
  while (true) {
    absl::MutexLock lock(&mutex_);
    if (ended_.AwaitFor(&mutex_, absl::Condition(this, &WorkerJob::HasEnded), kLookForStop)) {
      end = *end_;
      break;
    }
    if (stop->HasBeenNotified()) {
      end = absl::CancelledError("told to stop");
      break;
    }
  }
  strategy_->Cancel();
  for (const auto& shard : shards_) shard->Cancel();
  if (stop->HasBeenNotified()) heartbeat_->Leave(kGoodbye);
  training.join();
  return end;
}

void WorkerJob::FillStatus(ProcessStatus* status) const {
  const ProgressReport report = progress_.Report();
  status->set_state(report.done ? "done" : report.waiting_for.empty() ? "training" : "waiting");
  status->set_waiting_for(report.waiting_for);
  status->set_global_step(report.local_step.value());
  WorkerStatus* worker = status->mutable_worker();
  worker->set_local_step(report.local_step.value());
  worker->set_examples(report.examples);
  if (report.seconds_computing > 0) {
    worker->set_examples_per_second(static_cast<double>(report.examples) /
                                    report.seconds_computing);
  }
  worker->set_accepted(report.accepted);
  worker->set_stale(report.stale);
  worker->set_towers(TowersOf(options_.registration.job()));
  worker->set_device("cpu");
  worker->set_loss(report.loss);
}

void WorkerJob::ReportFailure(const absl::Status& failure) {
  // Peers that are away may come back for the others; what is wrong here for good ends the job.
  const ExitCode code = ExitCodeFor(failure);
  if (static_cast<int>(code) >= static_cast<int>(ExitCode::kInterrupted) ||
      code == ExitCode::kFenced)
    return;
  ReportErrorRequest request;
  request.set_job_id(options_.registration.job_id());
  request.set_worker(options_.worker);
  request.set_incarnation(options_.incarnation);
  request.set_message(std::string(failure.message()));
  request.set_exit_code(static_cast<int>(code));
  absl::Notification told;
  chief_->Call(kReportError, request, [&](absl::StatusOr<ReportErrorReply> reply) {
    if (!reply.ok())
      log::Warning(
          absl::StrCat("the chief was not told of the failure: ", reply.status().message()));
    told.Notify();
  });
  told.WaitForNotification();
}

void WorkerJob::EndWith(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  end_ = std::move(status);
  ended_.Signal();
}

}  // namespace lockstep::worker
