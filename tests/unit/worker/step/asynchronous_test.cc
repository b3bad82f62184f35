// Replicas that train without tokens, over parameter servers in this process.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/unit/worker/step/click_job.h"

namespace lockstep::worker {
namespace {

using test::ClickJob;
using test::ClickJobOptions;

void TrainToTheEnd(ClickJob* job) {
  for (const absl::Status& end : job->Train()) {
    INFO(end);
    CHECK(end.ok());
  }
}

TEST_CASE("replicas train until the step shard has applied its last gradient") {
  for (const uint32_t ps : {1u, 3u}) {
    CAPTURE(ps);
    ClickJob job({.ps = ps, .workers = 3, .max_part_bytes = 128, .end = 60, .asynchronous = true});
    TrainToTheEnd(&job);
    const ps::ShardReport report = job.cluster().shard(0).Report();
    CHECK(report.state.shard_step == GlobalStep(60));
    uint64_t parts = 0;
    for (uint32_t shard = 0; shard < ps; ++shard) parts += job.layout().pushed_parts(0, shard);
    uint64_t examples = 0;
    uint64_t verdicts = 0;
    for (uint32_t worker = 0; worker < 3; ++worker) {
      const ProgressReport progress = job.report(worker);
      CHECK(progress.done);
      CHECK(progress.local_step <= GlobalStep(60));
      examples += progress.examples;
      verdicts += progress.accepted + progress.stale;
      // Each its own count, one after the other.
      std::vector<int64_t> counted(job.batches(worker).size());
      std::iota(counted.begin(), counted.end(), 0);
      CHECK(job.batches(worker) == counted);
    }
    // How many are computed in vain depends on how long the last one took to be applied; each was
    // told what became of it.
    CHECK(examples >= 60 * 8);
    CHECK(verdicts == examples / 8 * parts);
    // Not the loss of the last gradient: which that is, and how old, depends on the threads.
    CHECK(job.MeanLoss() < 0.1);  // ln 2 at first
  }
}

TEST_CASE("a single replica gets the same bits with tokens and without") {
  ClickJobOptions options{.optimizer = "adam {} learning_rate { base: 0.05 }", .ps = 2};
  options.max_part_bytes = 64;
  ClickJob synchronous(options);
  TrainToTheEnd(&synchronous);
  options.asynchronous = true;
  ClickJob asynchronous(options);
  TrainToTheEnd(&asynchronous);
  for (const char* name : {"table/table", "hidden/kernel", "scores/bias", "train/loss"}) {
    CHECK(asynchronous.Values(name) == synchronous.Values(name));
  }
  // All in the class of those from which nothing had changed since.
  CHECK(asynchronous.cluster().shard(0).Report().staleness.size() == 1);
}

TEST_CASE("with a bound of none but the own gradient, others' make some stale and nobody stops") {
  ClickJob job({.workers = 3, .end = 60, .asynchronous = true, .max_staleness = 0});
  TrainToTheEnd(&job);
  const ps::ShardReport report = job.cluster().shard(0).Report();
  CHECK(report.state.shard_step == GlobalStep(60));
  CHECK(report.staleness.size() == 1);
}

TEST_CASE("a shard that a gradient reads nothing of does not drop it as stale") {
  // Most of eight ps have nothing but rows of the table, of which a step needs two.
  ClickJobOptions options{.ps = 8, .batch = 1, .max_part_bytes = 16, .end = 40};
  options.asynchronous = true;
  options.max_staleness = 0;
  ClickJob job(options);
  TrainToTheEnd(&job);
  CHECK(job.report(0).stale == 0);
  for (size_t shard = 0; shard < 8; ++shard) {
    CHECK(job.cluster().shard(shard).Report().state.shard_step == GlobalStep(40));
  }
}

TEST_CASE("a replica that comes later goes on with the data where all of them are about") {
  ClickJobOptions options{.workers = 2, .start = 21, .end = 40, .asynchronous = true};
  ClickJob job(options);
  TrainToTheEnd(&job);
  for (uint32_t worker = 0; worker < 2; ++worker) {
    REQUIRE_FALSE(job.batches(worker).empty());
    CHECK(job.batches(worker)[0] == 10);
  }
}

TEST_CASE("a replica that is told to stop ends between two gradients") {
  ClickJob job({.end = int64_t{1} << 40, .asynchronous = true});
  std::thread stopper([&] {
    while (job.report(0).examples == 0) std::this_thread::yield();
    job.Stop();
  });
  const std::vector<absl::Status> ends = job.Train();
  stopper.join();
  CHECK(absl::IsCancelled(ends[0]));
  CHECK_FALSE(job.report(0).done);
}

}  // namespace
}  // namespace lockstep::worker
