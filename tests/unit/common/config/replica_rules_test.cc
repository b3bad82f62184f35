#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>

#include "common/config/job.h"
#include "tests/unit/common/config/job_parts.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using namespace job_parts;

absl::StatusOr<LoadedJob> Load(const std::string& batch, const std::string& more) {
  return job_parts::Load(kModelPath + kStop + kOptimizer + batch + " " + more);
}

std::string ErrorOf(const std::string& batch, const std::string& more) {
  const auto loaded = Load(batch, more);
  REQUIRE_FALSE(loaded.ok());
  CHECK_THAT(std::string(loaded.status().message()),
             Contains("sync.min_replicas") && Contains("Remedy: "));
  return std::string(loaded.status().message());
}

std::string With(const std::string& sync, const std::string& more = kData) {
  return ErrorOf("global_batch: 12", "sync { min_replicas: 2 " + sync + " } " + more);
}

TEST_CASE("workers come and go only in jobs whose steps divide one stream of examples") {
  REQUIRE(Load("global_batch: 12", std::string(kData) + "sync { min_replicas: 2 }").ok());
  CHECK_THAT(With("asynchronous {}"), Contains("sync.asynchronous"));
  CHECK_THAT(With("token_policy: FIFO"), Contains("sync.token_policy: FIFO"));
  CHECK_THAT(With("", std::string(kData) + "strategy { replicated {} }"),
             Contains("strategy.replicated"));
  CHECK_THAT(With("", "data { idx { train_images: 'a' train_labels: 'b' } auto_shard: OFF }"),
             Contains("data.auto_shard"));
  CHECK_THAT(With("",
                  "data { idx { train_images: 'a' train_labels: 'b' } "
                  "transform { shuffle { buffer: 3 } } transform { batch {} } "
                  "transform { repeat {} } }"),
             Contains("data.transform"));
  CHECK_THAT(ErrorOf("local_sync {}", std::string(kData) + "sync { min_replicas: 2 }"),
             Contains("local_sync"));
  CHECK_THAT(ErrorOf("batch_per_tower: 3", std::string(kData) + "sync { min_replicas: 2 }"),
             Contains("give global_batch in place of batch_per_tower"));
}

TEST_CASE("shards have copies only where the mean of a step is all that a copy must know") {
  const std::string data = kData;
  CHECK(Load("global_batch: 12", data + "sync { ps_replicas: 1 }").ok());
  const auto with = [&](const std::string& sync, const std::string& more) {
    const auto loaded = Load("global_batch: 12", data + "sync { " + sync + " } " + more);
    REQUIRE_FALSE(loaded.ok());
    CHECK_THAT(std::string(loaded.status().message()),
               Contains("sync.ps_replicas") && Contains("Remedy: "));
    return std::string(loaded.status().message());
  };
  CHECK_THAT(with("ps_replicas: 2", ""), Contains("expected a number from 0 to 1, got 2"));
  CHECK_THAT(with("ps_replicas: 1 asynchronous {}", ""), Contains("sync.asynchronous"));
  CHECK_THAT(with("ps_replicas: 1 token_policy: FIFO", ""), Contains("sync.token_policy: FIFO"));
  CHECK_THAT(with("ps_replicas: 1 min_replicas: 2", ""), Contains("sync.min_replicas"));
  CHECK_THAT(with("ps_replicas: 1", "strategy { replicated {} }"), Contains("strategy.replicated"));
}

TEST_CASE("a global batch must divide over some number of workers from min_replicas on") {
  CHECK_THAT(ErrorOf("global_batch: 12", std::string(kData) + "sync { min_replicas: 13 }"),
             Contains("from 13 on") && Contains("use at most 12"));
  CHECK_THAT(ErrorOf("global_batch: 9 towers: 2", std::string(kData) + "sync { min_replicas: 2 }"),
             Contains("with 2 towers per worker") && Contains("a multiple of 4"));
  CHECK_FALSE(Load("global_batch: 12", std::string(kData) + "sync { min_replicas: 0 }").ok());
}

TEST_CASE("memory is planned for the largest batch that a worker can have") {
  JobDef job;
  job.set_global_batch(12);
  job.mutable_sync()->set_min_replicas(2);
  for (const int64_t workers : {2, 3, 5, 100}) {
    REQUIRE(ValidateJob(&job, workers).ok());
    CHECK(job.batch_per_tower() == 6);
    CHECK_FALSE(job.sync().has_replicas_to_aggregate());
  }
  job.mutable_sync()->set_min_replicas(5);
  REQUIRE(ValidateJob(&job, 6).ok());
  CHECK(job.batch_per_tower() == 2);
  const std::string error(ValidateJob(&job, 5).message());
  CHECK_THAT(error, Contains("sync.min_replicas: with the 5 workers of the cluster spec") &&
                        Contains("lower min_replicas"));
}

}  // namespace
}  // namespace lockstep
