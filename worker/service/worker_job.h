// One job on one worker, from the chief's registration reply to the end: opens the data, builds the
// towers, trains and evaluates, and keeps the chief informed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/monotonic_wait.h"
#include "common/client/chief_client.h"
#include "common/model/graph.h"
#include "common/rpc/alarm_timer.h"
#include "proto/chief.pb.h"
#include "proto/status.pb.h"
#include "worker/backend/backend.h"
#include "worker/cache/variable_layout.h"
#include "worker/data/pipeline.h"
#include "worker/device/device.h"
#include "worker/evaluate/evaluator.h"
#include "worker/service/background_call.h"
#include "worker/service/heartbeat.h"
#include "worker/service/shard_links.h"
#include "worker/service/shared_memory.h"
#include "worker/service/trainer.h"
#include "worker/service/training_data.h"
#include "worker/service/worker_devices.h"
#include "worker/step/progress.h"
#include "worker/step/timeline.h"
#include "worker/strategy/parameter_server/shard_group.h"

namespace lockstep::worker {

struct WorkerJobOptions {
  RegisterTaskReply registration;
  uint32_t worker = 0;
  uint64_t incarnation = 0;
  std::vector<std::string> ps_addresses;
  // Where the ps of a shard is as of now; null: as in ps_addresses.
  std::function<std::string(size_t shard)> home_of = nullptr;
  // Heartbeat::Callbacks::chief_name.
  std::function<std::string()> chief_name;
  // Gets each cluster spec that the chief tells, on a thread of `chief`; null: nobody.
  std::function<void(const ClusterDef&)> on_cluster = nullptr;
  rpc::EventQueue* queue = nullptr;  // of calls and timers; outlives the run
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // of calls
  PeerService* peers = nullptr;                  // of this process; outlives the run
  Backend backend;                               // where towers compute
  int threads = 1;                               // of this process's computation, over all towers
  absl::Duration patience = absl::Seconds(120);  // with a ps or a chief that is away
  TowerDelay delay;                              // for trials
  // StepRunnerOptions::timeline, of the first tower where each trains by itself; outlives the run.
  Timeline* timeline = nullptr;
  ExampleLog* example_log = nullptr;  // of all towers; may be null; outlives the run
};

class WorkerJob {
 public:
  // `chief` outlives the run. An error of the registration, the data or the model is told to the
  // chief, so that the job ends with it.
  static absl::StatusOr<std::unique_ptr<WorkerJob>> Create(WorkerJobOptions options,
                                                           ChiefClient* chief);
  // Ends the threads; waits for the peers' calls in flight.
  ~WorkerJob();

  // Blocks until the chief says that the job is over (OK) or failed, until training here cannot go
  // on, or until `stop` is notified (CANCELLED).
  absl::Status Run(const MonotonicNotification* stop);

  // Thread-safe, also while Run runs.
  void FillStatus(ProcessStatus* status) const;

 private:
  // A registration that is not sound has 0 trainers, and Prepare must not be called.
  WorkerJob(WorkerJobOptions options, ChiefClient* chief, int num_trainers);
  void StartHeartbeat();
  absl::Status Prepare();
  void OnReply(const HeartbeatReply& reply);
  // The group of a replicated job to those who train, as soon as both are there.
  void TellGroup();
  absl::Status OpenData();
  void ConnectShards();
  absl::Status MakeTrainers();
  // One thread for each trainer. What one of them ends with, other than OK, ends the job here.
  std::vector<std::thread> StartTraining();
  absl::Status StartEvaluator();
  // Of a job whose workers come and go: lets the chief divide the batch over the others first.
  bool MayDepart() const { return options_.registration.has_share(); }
  // What ends the job here, as soon as that is known; nothing after `limit`.
  std::optional<absl::Status> AwaitEnd(absl::Duration limit);
  // Whether a worker that was told to stop so long ago may end now: it departs first, or finishes
  // the gradient at hand.
  bool MayLeave(absl::Duration told_for);
  // Blocks until the chief has heard of it, until it was away for longer than a standby takes, or
  // until the job ends here. In Create nothing ends it earlier, not even a worker's stop.
  void ReportFailure(const absl::Status& failure);
  void EndWith(absl::Status status);
  bool HasEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end_.has_value(); }

  const WorkerJobOptions options_;
  ChiefClient* const chief_;
  const WorkerIdentity identity_;
  std::vector<Progress> progress_;  // by trainer
  std::atomic<bool> departs_ = false;

  // Made by Prepare, constant afterwards.
  ModelGraph graph_;
  VariableLayout layout_;
  VariableLayout loss_layout_;  // of a replicated job
  std::string reduction_;       // Trainer::reduction, or WorkerDevices::reduction
  Backend backend_;
  WorkerDevices devices_;
  std::unique_ptr<SharedMemory> memory_;
  rpc::AlarmTimer timer_;
  std::unique_ptr<ShardLinks> links_;
  std::atomic<bool> is_connected_ = false;  // links_ is there
  TrainingData data_;
  std::unique_ptr<TestSet> test_set_;  // null: the job has no test files with labels
  std::shared_ptr<Device> evaluation_device_;
  std::vector<std::unique_ptr<Trainer>> trainers_;

  mutable absl::Mutex mutex_;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  MonotonicCondVar ended_;
  std::optional<GroupView> group_ ABSL_GUARDED_BY(mutex_);  // the chief's newest
  Trainer* replicated_ ABSL_GUARDED_BY(mutex_) = nullptr;   // once it is made
  std::unique_ptr<Evaluator> evaluator_ ABSL_GUARDED_BY(mutex_);
  // Of a replicated job: TellGroup, away from the queue's thread. Each group takes memory for all
  // gradients of all towers, which may last longer than a lease.
  std::unique_ptr<BackgroundCall> tell_group_;
  // From the first moment, since opening the data may take longer than a lease. Calls into all
  // above.
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace lockstep::worker
