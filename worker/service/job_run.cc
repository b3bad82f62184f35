#include "worker/service/job_run.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLookForStop = absl::Milliseconds(50);

WorkerIdentity IdentityOf(const JobRunOptions& options) {
  WorkerIdentity identity;
  identity.set_job(options.registration.job_id());
  identity.set_epoch(options.registration.epoch());
  identity.set_worker(options.worker);
  identity.set_incarnation(options.incarnation);
  return identity;
}

bool HasTestFiles(const DataDef& data) {
  return data.has_idx() ? !data.idx().test_images().empty() : !data.csv().test().empty();
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobRun>> JobRun::Create(JobRunOptions options, ChiefClient* chief) {
  std::unique_ptr<JobRun> run(new JobRun(std::move(options), chief));
  if (absl::Status status = run->Prepare(); !status.ok()) {
    run->ReportFailure(status);
    return status;
  }
  return run;
}

JobRun::JobRun(JobRunOptions options, ChiefClient* chief)
    : options_(std::move(options)), chief_(chief) {}

JobRun::~JobRun() = default;

absl::Status JobRun::Prepare() {
  const RegisterTaskReply& job = options_.registration;
  LOCKSTEP_ASSIGN_OR_RETURN(graph_, ModelGraph::Build(job.model()));
  if (static_cast<int>(graph_.variables().size()) != job.placement().variables_size() ||
      job.placement().shards() != options_.ps_addresses.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the chief placed ", job.placement().variables_size(), " variables on ",
                     job.placement().shards(), " ps; this worker's model has ",
                     graph_.variables().size(), " and its cluster spec ",
                     options_.ps_addresses.size(), " ps. Remedy: run the same version everywhere"));
  }
  const JobDef& def = job.job();
  const ExampleSpec spec = {graph_.input_shape(), graph_.is_classifier(), graph_.num_outputs()};
  const int64_t towers = std::max<int64_t>(def.towers(), 1);
  PipelineOptions pipeline;
  pipeline.seed = def.seed();
  pipeline.replica = options_.worker;
  pipeline.num_replicas = job.total_num_replicas();
  pipeline.batch_per_tower = def.batch_per_tower();
  pipeline.towers = towers;
  LOCKSTEP_ASSIGN_OR_RETURN(data_, Pipeline::Open(def.data(), spec, pipeline));
  if (HasTestFiles(def.data())) {
    LOCKSTEP_ASSIGN_OR_RETURN(test_set_, TestSet::Open(def.data(), spec));
  }
  TowerGroupOptions group;
  group.towers = static_cast<int>(towers);
  group.batch_per_tower = def.batch_per_tower();
  group.threads_per_tower = std::max(1, options_.threads / group.towers);
  LOCKSTEP_ASSIGN_OR_RETURN(towers_, TowerGroup::Create(graph_, group));

  TrainingLoopOptions training;
  training.identity = IdentityOf(options_);
  training.placement = job.placement();
  training.start_step = GlobalStep(job.start_step());
  training.seed = def.seed();
  training.patience = options_.patience;
  for (size_t i = 0; i < options_.ps_addresses.size(); ++i) {
    training.shard_names.push_back(absl::StrCat("ps ", i, " (", options_.ps_addresses[i], ")"));
    shards_.push_back(
        MakePsData({.address = options_.ps_addresses[i], .name = absl::StrCat("ps ", i)}));
    shard_pointers_.push_back(shards_.back().get());
  }
  training_ = std::make_unique<TrainingLoop>(std::move(training), shard_pointers_, towers_.get(),
                                             data_.get(), &progress_);
  return absl::OkStatus();
}

absl::Status JobRun::Run(const absl::Notification* stop) {
  // The evaluator tells the heartbeat, and the heartbeat asks the evaluator: each outlives the
  // other's calls because the heartbeat goes first and `kick` is empty until it is there.
  absl::Mutex kick_mutex;
  std::function<void()> kick;
  std::unique_ptr<Evaluator> evaluator;
  if (test_set_ != nullptr) {
    EvaluatorOptions evaluation;
    evaluation.identity = IdentityOf(options_);
    evaluation.placement = options_.registration.placement();
    evaluation.batch = options_.registration.job().evaluation().batch();
    evaluation.threads = options_.threads;
    evaluator = std::make_unique<Evaluator>(std::move(evaluation), &graph_, shard_pointers_,
                                            test_set_.get(), [&] {
                                              absl::MutexLock lock(&kick_mutex);
                                              if (kick) kick();
                                            });
  }
  HeartbeatOptions beat;
  beat.job_id = options_.registration.job_id();
  beat.worker = options_.worker;
  beat.incarnation = options_.incarnation;
  beat.patience = options_.patience;
  auto heartbeat = std::make_unique<Heartbeat>(
      beat, chief_, &progress_,
      Heartbeat::Callbacks{
          .results =
              [&] { return evaluator ? evaluator->Results() : std::vector<EvaluationResult>(); },
          .reply =
              [&](const HeartbeatReply& reply) {
                if (evaluator) evaluator->SetLeases(reply.leases());
              },
          .end = [&](absl::Status status) { EndWith(std::move(status)); }});
  {
    absl::MutexLock lock(&kick_mutex);
    kick = [&heartbeat] { heartbeat->Kick(); };
  }
  std::thread training([&] {
    const absl::Status status = training_->Run();
    if (status.ok() || absl::IsCancelled(status)) return;
    ReportFailure(status);
    EndWith(status);
  });

  absl::Status end;
  while (true) {
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(this, &JobRun::HasEnded), kLookForStop)) {
      end = *end_;
      break;
    }
    if (stop->HasBeenNotified()) {
      end = absl::CancelledError("told to stop");
      break;
    }
  }
  {
    absl::MutexLock lock(&kick_mutex);
    kick = nullptr;
  }
  heartbeat.reset();
  training_->Stop();
  for (const auto& shard : shards_) shard->Cancel();
  training.join();
  return end;
}

void JobRun::FillStatus(ProcessStatus* status) const {
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
  worker->set_towers(
      static_cast<uint32_t>(std::max<int64_t>(options_.registration.job().towers(), 1)));
  worker->set_device("cpu");
  worker->set_loss(report.loss);
}

void JobRun::ReportFailure(const absl::Status& failure) {
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
  chief_->ReportError(request, [&](absl::StatusOr<ReportErrorReply> reply) {
    if (!reply.ok())
      log::Warning(
          absl::StrCat("the chief was not told of the failure: ", reply.status().message()));
    told.Notify();
  });
  told.WaitForNotification();
}

void JobRun::EndWith(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (!end_.has_value()) end_ = std::move(status);
}

}  // namespace lockstep::worker
