// What operators and workers call, through the services of a chief, from the start of its job to
// the end: an operator's stop comes at any of these moments.
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "chief/job/job_series.h"
#include "chief/loop/event_loop.h"
#include "chief/service/chief_service.h"
#include "chief/service/job_control_service.h"
#include "common/base/check.h"
#include "common/base/version.h"
#include "common/rpc/server.h"
#include "proto/chief.grpc.pb.h"
#include "proto/job_control.grpc.pb.h"
#include "ps/shard/shard.h"
#include "tests/fuzz/service_calls.h"
#include "tests/fuzz/target.h"
#include "tests/support/in_process_ps.h"
#include "tests/support/placed_variable.h"

namespace lockstep::fuzz {
namespace {

constexpr uint64_t kJobId = 9;
constexpr uint64_t kWorkersIncarnation = 10;

// One ps and one worker, whose gradient is a step. Without a checkpoint folder.
chief::JobPlan Plan() {
  chief::JobPlan plan;
  plan.cluster = {.ps = {"127.0.0.1:1"}, .workers = {"127.0.0.1:2"}, .chief = "127.0.0.1:3"};
  plan.job.set_towers(1);
  plan.job.set_batch_per_tower(1);
  plan.job.mutable_sync()->set_replicas_to_aggregate(1);
  plan.job.mutable_optimizer()->mutable_sgd();
  plan.placement.set_shards(1);
  *plan.placement.add_variables() = PlacedVariable(0, "weights", 4, 0, true, 1);
  *plan.placement.add_variables() = PlacedVariable(1, "train/loss", 1, 0, false, 0);
  plan.loss_variable = 1;
  plan.optimizer = "sgd";
  plan.max_steps = GlobalStep(100);
  plan.epoch = Epoch(1);
  plan.learning_rate = [](GlobalStep) { return 0.5f; };
  return plan;
}

// A chief's job whose clock runs a thousand times as fast.
class FastJob {
 public:
  FastJob() {
    loop_.Post([this] { series_.Start(); });
    thread_ = std::thread([this] {
      loop_.Run(absl::Milliseconds(1), [this] {
        for (int i = 0; i < 10; ++i) {
          clock_.Advance(absl::Milliseconds(100));
          series_.Tick();
        }
      });
    });
  }
  ~FastJob() {
    loop_.Quit();
    thread_.join();
    ps_.reset();  // the calls in flight end before what they come back to
    shard_.Stop();
  }

  chief::EventLoop* loop() { return &loop_; }
  chief::JobSeries* series() { return &series_; }
  // The worker comes. On a slow machine the job may have lost patience before.
  void Register() {
    absl::Notification registered;
    loop_.Post([&] {
      RegisterTaskRequest request;
      request.set_incarnation(kWorkersIncarnation);
      request.set_cluster(Plan().cluster.Canonical());
      request.set_version(kVersion);
      series_.job()->worker_calls()->Register(
          request, chief::Answer<RegisterTaskReply>(
                       [&registered](const absl::StatusOr<RegisterTaskReply>& reply) {
                         CheckMessage(reply.status());
                         registered.Notify();
                       }));
    });
    registered.WaitForNotification();
  }

 private:
  ps::Shard shard_{ps::ShardOptions()};
  std::unique_ptr<PsControl> ps_ = MakeInProcessControl(&shard_, Incarnation(100));
  chief::EventLoop loop_;
  ManualClock clock_;
  chief::JobSeries series_{Plan(),
                           {.job_id = kJobId, .incarnation = Incarnation(1)},
                           {ps_.get()},
                           &loop_,
                           &clock_,
                           [] {},
                           [](absl::Status) {}};
  std::thread thread_;
};

// The first byte says whether the worker has registered already.
void CallsJobControl(absl::string_view input) {
  if (input.empty()) return;
  FastJob job;
  if ((input[0] & 1) != 0) job.Register();
  const std::unique_ptr<rpc::Service> workers = chief::MakeChiefService(
      [&](WorkerIndex worker, Incarnation incarnation) {
        return job.series()->CallsFor(worker, incarnation);
      },
      job.loop());
  const std::unique_ptr<rpc::Service> operators = chief::MakeJobControlService(
      [&](chief::Answer<StopReply> answer) { job.series()->StopForOperator(std::move(answer)); },
      job.loop());
  auto server =
      Server::Start({.address = "127.0.0.1:0", .services = {workers.get(), operators.get()}});
  LOCKSTEP_CHECK(server.ok());
  MakeCalls(
      absl::StrCat("127.0.0.1:", (*server)->port()),
      CallsOf({Chief::service_full_name(), JobControl::service_full_name()}, input.substr(1)));
}

const Target kJobControl("job_control", CallsJobControl);

}  // namespace
}  // namespace lockstep::fuzz
