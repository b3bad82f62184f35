#include "worker/service/worker_job.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"
#include "common/rpc/event_queue.h"
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

}  // namespace
}  // namespace lockstep::worker
