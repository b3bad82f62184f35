// Reductions that no worker of a replicated job could make.
#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"
#include "tests/unit/common/config/job_parts.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using namespace job_parts;

absl::Status Check(const std::string& replicated, int64_t workers, int64_t towers) {
  const std::string job = kModelPath + kData + kOptimizer + kStop +
                          "batch_per_tower: 4 towers: " + std::to_string(towers) +
                          " strategy { replicated { " + replicated + " } }";
  auto loaded = Load(job);
  return loaded.ok() ? ValidateJob(&loaded->job, workers) : loaded.status();
}

std::string RefusalOf(const std::string& replicated, int64_t workers, int64_t towers) {
  CAPTURE(replicated, workers, towers);
  const absl::Status refused = Check(replicated, workers, towers);
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()), Contains("Remedy: "));
  return std::string(refused.message());
}

std::string Spec(const std::string& text) {
  return "cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: '" + text + "' } }";
}

std::string Algorithm(const std::string& name) {
  return "cross_tower_ops { all_reduce { all_reduce_alg: '" + name + "' } }";
}

TEST_CASE("Replicated towers, which are reduced on the host, take nothing that needs GPUs") {
  CHECK_THAT(RefusalOf("mode: NCCL", 1, 2),
             Contains("strategy.replicated.mode: NCCL needs GPUs, and replicated towers are "
                      "reduced on the host. Remedy: use CPU, GPU or COLLECTIVE, or leave it out"));
  const std::string all_reduce = "strategy.replicated.cross_tower_ops.all_reduce.all_reduce_alg: ";
  for (const std::string& nccl :
       {std::string("cross_tower_ops { all_reduce {} }"), Algorithm("nccl")}) {
    CHECK_THAT(RefusalOf(nccl, 1, 2), Contains(all_reduce + "nccl needs GPUs"));
  }
  CHECK_THAT(RefusalOf(Spec("nccl/xring"), 2, 2),
             Contains("strategy.replicated.cross_tower_ops.multi_worker_all_reduce: "
                      "all_reduce_spec, range 0: nccl/xring needs GPUs"));
  CHECK_THAT(RefusalOf(Spec("xring:2k:psgpu"), 2, 2), Contains("range 1: psgpu needs GPUs"));
}

TEST_CASE("An all_reduce has one of its two algorithms") {
  CHECK_THAT(RefusalOf(Algorithm("foo"), 1, 2),
             Contains("all_reduce.all_reduce_alg: expected \"nccl\" or \"hierarchical_copy\", "
                      "got \"foo\""));
  CHECK(Check(Algorithm("hierarchical_copy"), 1, 2).ok());
}

TEST_CASE("An all_reduce_spec suits the workers and towers that there are") {
  CHECK_THAT(RefusalOf(Spec("pscpu#5"), 2, 4),
             Contains("all_reduce_spec, range 0: pscpu over 2 workers with 4 towers each: shards: "
                      "expected at most 2, the number of gather devices, got 5"));
  CHECK(Check(Spec("pscpu#5"), 5, 1).ok());
  CHECK_THAT(RefusalOf(Spec("xring"), 1, 1), Contains("a ring has at least 2 participants"));
  CHECK(Check(Spec("xring"), 1, 2).ok());
  CHECK(Check(Spec("xring"), 2, 1).ok());
  CHECK_THAT(RefusalOf(Spec("pscpu:2k:xring#3"), 2, 2), Contains("range 1: xring over 2 workers"));
  CHECK(Check(Spec("pscpu:2k:xring#3"), 2, 3).ok());
  for (const int64_t workers : {1, 2, 7}) {
    CHECK(Check("cross_tower_ops { multi_worker_all_reduce {} }", workers, 1).ok());
  }
}

}  // namespace
}  // namespace lockstep
