#include "worker/service/worker_job.h"

#include <catch2/catch.hpp>
#include <string>

#include "chief/plan/place.h"
#include "common/base/exit_code.h"
#include "common/config/text_proto.h"
#include "common/rpc/event_queue.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker/service/fake_chief.h"

namespace lockstep::worker {
namespace {

// Of a chief that is broken: no worker has so many towers.
WorkerJobOptions Broken(rpc::EventQueue* queue) {
  WorkerJobOptions options;
  options.queue = queue;
  options.incarnation = 9;
  RegisterTaskReply& registration = options.registration;
  registration.set_job_id(5);
  registration.set_total_num_replicas(1);
  registration.set_replicas_to_aggregate(1);
  registration.set_max_steps(100);
  registration.set_lease_ms(5000);
  JobDef& job = *registration.mutable_job();
  job.mutable_sync()->mutable_asynchronous();
  job.set_towers(int64_t{1} << 31);
  job.set_batch_per_tower(1);
  job.mutable_evaluation()->set_batch(1);
  return options;
}

TEST_CASE("a registration that makes no sense ends the job, and the worker with it") {
  rpc::EventQueue queue;
  FakeChief chief;
  const absl::Status end = WorkerJob::Create(Broken(&queue), &chief).status();
  CHECK(ExitCodeFor(end) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(end.message()), Catch::Contains("job.towers: expected 0 to "));
  REQUIRE(chief.reports.size() == 1);
  CHECK(chief.reports[0].job_id() == 5);
  CHECK(chief.reports[0].incarnation() == 9);
  CHECK(chief.reports[0].message() == end.message());
  CHECK(chief.reports[0].exit_code() == static_cast<int>(ExitCode::kBadConfiguration));
}

TEST_CASE("a chief that is away for a moment hears of a failure, too") {
  rpc::EventQueue queue;
  FakeChief chief;
  chief.failing_reports = 2;
  CHECK_FALSE(WorkerJob::Create(Broken(&queue), &chief).ok());
  CHECK(chief.reports.size() == 3);
}

constexpr char kScores[] = R"pb(
  layers {
    name: "scores"
    dense { units: 2 }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  })pb";

// 8 GiB.
constexpr char kTable[] = R"pb(
  input_shape: 2
  layers {
    name: "clicks"
    embedding { rows: 16777216 dim: 127 combiner: SUM }
  })pb";

// 1000 of 8 GiB each.
constexpr char kDense[] = R"pb(
  input_shape: 2
  layers {
    name: "dense"
    synthetic { variables: 1000 elements: 2147483647 }
  })pb";

// A worker of a job with such layers before its scores.
class Registered {
 public:
  Registered(const char* layers, const std::string& strategy) {
    HeartbeatReply over;
    over.set_finish(true);
    chief.EndJob(over);
    options_ = Broken(&queue_);
    options_.ps_addresses = {"127.0.0.1:1"};
    options_.chief_name = [] { return "the chief"; };
    RegisterTaskReply& registration = options_.registration;
    REQUIRE(
        ParseTextProto("model", std::string(layers) + kScores, registration.mutable_model()).ok());
    JobDef& job = *registration.mutable_job();
    job.Clear();
    REQUIRE(ParseTextProto("job", strategy + R"(optimizer { adam {} } batch_per_tower: 1
                                         evaluation { batch: 1 }
                                         data { scale: 1 csv { label_column: "2" no_header: true } }
                                         transport { shared_memory: OFF })",
                           &job)
                .ok());
    std::string clicks;
    for (int i = 0; i < 512; ++i) clicks += "1,2,0\n";
    job.mutable_data()->mutable_csv()->add_train(folder_.Write("train.csv", clicks));
    const auto graph = ModelGraph::Build(registration.model());
    REQUIRE(graph.ok());
    *registration.mutable_placement() = *chief::Place(*graph, 1, int64_t{1} << 40, {});
    if (job.strategy().has_replicated()) {
      chief::LeaveToWorkers(registration.mutable_placement());
    }
  }

  absl::Status Create() { return WorkerJob::Create(options_, &chief).status(); }

  FakeChief chief;

 private:
  lockstep::test::TemporaryFolder folder_;
  rpc::EventQueue queue_;
  WorkerJobOptions options_;
};

void CheckRefused(Registered* worker, const std::string& largest) {
  const absl::Status end = worker->Create();
  CHECK(absl::IsResourceExhausted(end));
  CHECK(ExitCodeFor(end) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(end.message()),
             Catch::Contains("variables: expected tensors that fit the memory, got at least ") &&
                 Catch::Contains(largest) && Catch::Contains(" available to this process") &&
                 Catch::Contains(". Remedy: use "));
  REQUIRE(worker->chief.reports.size() == 1);
  CHECK(worker->chief.reports[0].message() == end.message());
  CHECK(worker->chief.reports[0].exit_code() == static_cast<int>(ExitCode::kBadConfiguration));
}

TEST_CASE("variables that no memory holds end the job before anything is taken for them") {
  Registered replicated(kTable, "strategy { replicated {} } towers: 256 ");
  // Values, those of the next step and two slots, on each tower.
  CheckRefused(&replicated, "\"clicks/table\" of shape [16777216,127], takes 8727373545472 bytes");
  Registered dense(kDense, "");
  CheckRefused(&dense, " of shape [2147483647], takes 17179869176 bytes (1 values, 1 gradients)");
}

TEST_CASE("a table that the ps keep needs no room for all of its rows") {
  Registered worker(kTable, "");
  CHECK(worker.Create().ok());
  CHECK(worker.chief.reports.empty());
}

}  // namespace
}  // namespace lockstep::worker
