#include "worker/service/worker_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/await.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/base/retry_policy.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/device/pinned_tensor.h"
#include "worker/service/check_registration.h"
#include "worker/service/fitting_backend.h"
#include "worker/service/shard_options.h"
#include "worker/strategy/replicated/replicated_strategy.h"
#include "worker/tower/precision_of.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLookForStop = absl::Milliseconds(50);
// For the chief to hear that this worker leaves. Otherwise the lease ends, and says the same.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(1);
// For a step to begin of which a departing worker has no share.
constexpr absl::Duration kDeparture = absl::Seconds(3);
// For the gradient at hand. A ps that is told to end with this worker serves for a second more, in
// which the chief has to close the step and begin to save it.
constexpr absl::Duration kLastGradient = absl::Milliseconds(700);

WorkerIdentity IdentityOf(const WorkerJobOptions& options) {
  WorkerIdentity identity;
  identity.set_job(options.registration.job_id());
  identity.set_epoch(options.registration.epoch());
  identity.set_worker(options.worker);
  identity.set_incarnation(options.incarnation);
  return identity;
}

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

// Whether the chief ever leases a range of the test set.
bool IsEvaluated(const JobDef& job) {
  return job.evaluation().every_steps() > 0 || !job.evaluation().not_at_end();
}

// A standby takes over when the lease of a lost chief ends, which is as long as that of a worker.
absl::Duration ReportPatience(const WorkerJobOptions& options) {
  return std::min(2 * absl::Milliseconds(options.registration.lease_ms()), options.patience);
}

void FillLocalSync(const LoadReport& report, LocalSyncStatus* status) {
  status->set_loads(report.loads);
  status->set_rows(report.rows);
  status->set_pass(report.loads == 0 ? 0 : report.pass + 1);
  status->set_passes(report.passes);
  status->set_per_device_batch_size(report.per_device_batch_size);
  status->set_bytes_to_towers(report.bytes_to_towers);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerJob>> WorkerJob::Create(WorkerJobOptions options,
                                                             ChiefClient* chief) {
  const RegisterTaskReply& job = options.registration;
  absl::Status status = CheckRegistration(job, options.worker, options.ps_addresses.size());
  const int num_trainers = status.ok() ? NumTrainers(job.job()) : 0;
  std::unique_ptr<WorkerJob> run(new WorkerJob(std::move(options), chief, num_trainers));
  if (status.ok()) {
    run->StartHeartbeat();
    status = run->Prepare();
  }
  if (!status.ok()) {
    run->ReportFailure(status);
    return status;
  }
  return run;
}

WorkerJob::WorkerJob(WorkerJobOptions options, ChiefClient* chief, int num_trainers)
    : options_(std::move(options)),
      chief_(chief),
      identity_(IdentityOf(options_)),
      progress_(static_cast<size_t>(num_trainers)),
      timer_(options_.queue) {
  if (options_.registration.job().strategy().has_replicated()) {
    tell_group_ = std::make_unique<BackgroundCall>([this] { TellGroup(); });
  }
}

WorkerJob::~WorkerJob() {
  // The evaluator tells the heartbeat of results and the heartbeat asks the evaluator for them: the
  // evaluator goes first, out of the heartbeat's sight.
  std::unique_ptr<Evaluator> evaluator;
  {
    absl::MutexLock lock(&mutex_);
    evaluator = std::move(evaluator_);
  }
  if (links_ != nullptr) links_->Cancel();
  evaluator.reset();
  heartbeat_.reset();
}

void WorkerJob::StartHeartbeat() {
  HeartbeatOptions options;
  options.job_id = identity_.job();
  options.worker = identity_.worker();
  options.incarnation = identity_.incarnation();
  options.last_reply = options_.registration.id();
  options.patience = options_.patience;
  options.lease = absl::Milliseconds(options_.registration.lease_ms());
  heartbeat_ = std::make_unique<Heartbeat>(
      options, chief_, progress_,
      Heartbeat::Callbacks{.results =
                               [this] {
                                 absl::MutexLock lock(&mutex_);
                                 return evaluator_ ? evaluator_->Results()
                                                   : std::vector<EvaluationResult>();
                               },
                           .failed_view =
                               [this] {
                                 absl::MutexLock lock(&mutex_);
                                 return replicated_ ? replicated_->failed_view() : GroupViewId();
                               },
                           .reply = [this](const HeartbeatReply& reply) { OnReply(reply); },
                           .chief_name = options_.chief_name,
                           .end = [this](absl::Status status) { EndWith(std::move(status)); }});
}

void WorkerJob::OnReply(const HeartbeatReply& reply) {
  {
    absl::MutexLock lock(&mutex_);
    if (evaluator_) evaluator_->SetLeases(reply.leases());
    if (reply.has_group()) group_ = reply.group();
  }
  if (tell_group_ != nullptr && reply.has_group()) tell_group_->Request();
  if (reply.has_cluster() && options_.on_cluster != nullptr) options_.on_cluster(reply.cluster());
  if (is_connected_.load()) links_->SetPlaces(reply.shards());
}

void WorkerJob::TellGroup() {
  std::optional<GroupView> group;
  Trainer* to = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    group = group_;
    to = replicated_;
  }
  if (group.has_value() && to != nullptr) to->SetGroup(*group);
}

absl::Status WorkerJob::Prepare() {
  const RegisterTaskReply& job = options_.registration;
  for (Progress& progress : progress_) {
    progress.StartStep(GlobalStep(job.start_step()));
    progress.WaitFor("its own data");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(graph_, ModelGraph::Build(job.model()));
  LOCKSTEP_ASSIGN_OR_RETURN(layout_, VariableLayout::Create(job.placement()));
  if (job.job().strategy().has_replicated()) {
    LOCKSTEP_ASSIGN_OR_RETURN(loss_layout_, ReplicatedStrategy::LossLayout(job.placement()));
  }
  if (!IsOf(layout_, graph_) || layout_.num_shards() != options_.ps_addresses.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the chief placed ", layout_.variables().size(), " variables on ", layout_.num_shards(),
        " ps; this worker's model has ", graph_.variables().size(), " and its cluster spec ",
        options_.ps_addresses.size(),
        " ps, or the variables differ. Remedy: run the "
        "same version everywhere"));
  }
  backend_ = FittingBackend(options_.backend, graph_);
  LOCKSTEP_ASSIGN_OR_RETURN(devices_, WorkerDevices::Create(backend_, job.job(), options_.threads));
  LOCKSTEP_RETURN_IF_ERROR(OpenData());
  // With the data in memory, and before shared memory is taken for gradients.
  LOCKSTEP_RETURN_IF_ERROR(Trainer::CheckMemory(
      job.job(), layout_,
      SharedMemory::ReadsValuesInPlace(job.job().transport(), *devices_.first())));
  memory_ = std::make_unique<SharedMemory>(job.job(), devices_.first(),
                                           Trainer::GradientBytes(job.job(), graph_, layout_));
  ConnectShards();
  LOCKSTEP_RETURN_IF_ERROR(MakeTrainers());
  if (test_set_ != nullptr && IsEvaluated(job.job())) LOCKSTEP_RETURN_IF_ERROR(StartEvaluator());
  heartbeat_->SetReady();
  return absl::OkStatus();
}

absl::Status WorkerJob::OpenData() {
  LOCKSTEP_ASSIGN_OR_RETURN(
      data_, OpenTrainingData(options_.registration, options_.worker, graph_, devices_.towers()));
  LOCKSTEP_ASSIGN_OR_RETURN(test_set_, OpenTestSet(options_.registration, graph_));
  return absl::OkStatus();
}

void WorkerJob::ConnectShards() {
  links_ = std::make_unique<ShardLinks>(ShardLinksOptions{.identity = identity_,
                                                          .ps_addresses = options_.ps_addresses,
                                                          .home_of = options_.home_of,
                                                          .queue = options_.queue,
                                                          .credentials = options_.credentials},
                                        options_.registration, memory_.get(), &timer_);
  is_connected_.store(true);
}

absl::Status WorkerJob::MakeTrainers() {
  const JobDef& job = options_.registration.job();
  const TrainerResources resources{.graph = &graph_,
                                   .layout = &layout_,
                                   .loss_layout = &loss_layout_,
                                   .shards = {.shards = links_->transports(),
                                              .timer = &timer_,
                                              .make_tensor = PinnedTensors(devices_.first().get())},
                                   .ops = &backend_.ops(PrecisionOf(job)),
                                   .threads = options_.threads,
                                   .peers = options_.peers,
                                   .queue = options_.queue,
                                   .credentials = options_.credentials,
                                   .memory = memory_->gradients()};
  for (size_t trainer = 0; trainer < progress_.size(); ++trainer) {
    TrainerOptions options(DevicesOfTrainer(job, devices_.towers(), trainer));
    options.registration = &options_.registration;
    WorkerIdentity identity = identity_;
    identity.set_tower(static_cast<uint32_t>(trainer));
    options.shards = ShardOptionsOf(job, identity, options_.ps_addresses, options_.patience);
    options.shards.values_in_place = memory_->values_in_place();
    options.smaller_batches = data_.smaller_batches;
    options.departs = &departs_;
    // One late tower delays those that it trains with.
    if (trainer == 0) options.delay = options_.delay;
    if (trainer == 0) options.timeline = options_.timeline;
    options.example_log = options_.example_log;
    LOCKSTEP_ASSIGN_OR_RETURN(
        trainers_.emplace_back(),
        Trainer::Create(options, resources, std::move(data_.by_trainer[trainer]),
                        &progress_[trainer]));
  }
  reduction_ = devices_.reduction();
  if (reduction_.empty()) reduction_ = trainers_.front()->reduction();
  {
    absl::MutexLock lock(&mutex_);
    replicated_ = trainers_.front().get();
  }
  TellGroup();
  return absl::OkStatus();
}

absl::Status WorkerJob::StartEvaluator() {
  EvaluatorOptions options;
  options.identity = identity_;
  const EvaluationDef& evaluation = options_.registration.job().evaluation();
  options.batch = evaluation.batch();
  options.averages = evaluation.use_averages();
  evaluation_device_ = backend_.MakeDevice(options_.threads);
  options.device = evaluation_device_.get();
  options.ops = &backend_.ops(PrecisionOf(options_.registration.job()));
  options.patience = options_.patience;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<Evaluator> evaluator,
      Evaluator::Create(std::move(options), &graph_, &layout_, links_->transports(), &timer_,
                        test_set_.get(), [this] { heartbeat_->SendNow(); }));
  absl::MutexLock lock(&mutex_);
  evaluator_ = std::move(evaluator);
  return absl::OkStatus();
}

std::vector<std::thread> WorkerJob::StartTraining() {
  std::vector<std::thread> threads;
  for (const auto& trainer : trainers_) {
    threads.emplace_back([this, trainer = trainer.get()] {
      const absl::Status status = trainer->Run();
      if (status.ok()) return;
      if (absl::IsCancelled(status)) {
        log::Info(absl::StrCat("training has ended: ", status.message()));
        if (departs_) EndWith(status);
        return;
      }
      // The chief ends the job, or goes back to a checkpoint without this incarnation: its answer
      // to a heartbeat says which.
      if (HasLostVariables(status)) {
        log::Warning(status.message());
        for (Progress& progress : progress_)
          progress.WaitFor("the chief to go back to a checkpoint");
        return;
      }
      ReportFailure(status);
      EndWith(status);
    });
  }
  return threads;
}

std::optional<absl::Status> WorkerJob::AwaitEnd(absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  ended_.AwaitFor(&mutex_, absl::Condition(this, &WorkerJob::HasEnded), limit);
  return end_;
}

bool WorkerJob::MayLeave(absl::Duration told_for) {
  if (MayDepart()) {
    if (!departs_.exchange(true)) heartbeat_->Depart();
    return told_for >= kDeparture;
  }
  bool is_cancelled = true;
  for (const auto& trainer : trainers_) is_cancelled &= trainer->CancelAfterGradient();
  return is_cancelled || told_for >= kLastGradient;
}

absl::Status WorkerJob::Run(const MonotonicNotification* stop) {
  std::vector<std::thread> training = StartTraining();
  std::optional<absl::Duration> told;  // to stop
  std::optional<absl::Status> end;
  while (!end.has_value()) {
    end = AwaitEnd(kLookForStop);
    if (end.has_value() || !stop->HasBeenNotified()) continue;
    const absl::Duration now = Clock::Real()->Monotonic();
    if (!told.has_value()) told = now;
    if (MayLeave(now - *told)) EndWith(absl::CancelledError("told to stop"));
  }
  for (const auto& trainer : trainers_) trainer->Cancel();
  links_->Cancel();
  if (stop->HasBeenNotified()) heartbeat_->Leave(kLeaveTimeout);
  for (std::thread& thread : training) thread.join();
  return *end;
}

void WorkerJob::FillStatus(ProcessStatus* status) const {
  const ProgressReport report = Combine(progress_);
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
  worker->set_seconds_waiting_for_data(report.seconds_waiting_for_data);
  worker->set_seconds_training(report.seconds_training);
  worker->set_accepted(report.accepted);
  worker->set_stale(report.stale);
  worker->set_towers(TowersOf(options_.registration.job()));
  devices_.FillStatus(worker);
  worker->set_loss(report.loss);
  worker->set_reduction(reduction_);
  if (data_.local_sync != nullptr) {
    FillLocalSync(data_.local_sync->Report(), worker->mutable_local_sync());
  }
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
  RetryPolicy retry(CallKind::kPlain, {.patience = ReportPatience(options_)});
  while (true) {
    const absl::StatusOr<ReportErrorReply> reply =
        Await<ReportErrorReply>([&](Callback<ReportErrorReply> done) {
          chief_->Call(kReportError, request, std::move(done));
        });
    if (reply.ok()) return;
    const auto pause = retry.OnFailure(reply.status(), Clock::Real()->Monotonic());
    if (!pause.has_value()) {
      log::Warning(absl::StrCat("the chief was not told of the failure: ",
                                retry.GivenUp(reply.status()).message()));
      return;
    }
    if (AwaitEnd(*pause).has_value()) return;
  }
}

void WorkerJob::EndWith(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  end_ = std::move(status);
  ended_.SignalAll();
}

}  // namespace lockstep::worker
