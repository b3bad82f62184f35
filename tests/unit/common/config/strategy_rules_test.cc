// What a parameter_server's job may say of workers with several GPUs.
#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"
#include "tests/unit/common/config/job_parts.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using namespace job_parts;

absl::StatusOr<LoadedJob> LoadWithOps(const std::string& ops, const std::string& more = "") {
  return Load(kModelPath + kData + kBatch + kOptimizer + kStop +
              "strategy { parameter_server { cross_tower_ops { " + ops + " } } } " + more);
}

std::string RefusalOf(const std::string& ops, const std::string& more = "") {
  const absl::Status refused = LoadWithOps(ops, more).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()), Contains("Remedy: "));
  return std::string(refused.message());
}

TEST_CASE("A parameter server's towers are reduced to the worker's first GPU") {
  CHECK(LoadWithOps("reduction_to_one_device {}").ok());
  CHECK(LoadWithOps("all_reduce {}").ok());
  CHECK(LoadWithOps("all_reduce { all_reduce_alg: 'nccl' }").ok());
  const std::string path = "strategy.parameter_server.cross_tower_ops";
  CHECK_THAT(RefusalOf("reduction_to_one_device { reduce_to_device: 1 }"),
             Contains(path + ".reduction_to_one_device.reduce_to_device: expected 0, the GPU that "
                             "pushes, got 1"));
  CHECK(LoadWithOps("all_reduce { all_reduce_alg: 'hierarchical_copy' }").ok());
  CHECK_THAT(RefusalOf("all_reduce { all_reduce_alg: 'xring' }"),
             Contains(path + ".all_reduce.all_reduce_alg: expected \"nccl\" or "
                             "\"hierarchical_copy\", got \"xring\""));
  CHECK_THAT(RefusalOf("all_reduce { packing { num_packs: 1 } }"),
             Contains(path + ".all_reduce.packing: "));
  for (const char* const other : {"", "collective_all_reduce {}", "multi_worker_all_reduce {}"}) {
    CHECK_THAT(RefusalOf(other), Contains(path + ": it names no op that reduces to one GPU"));
  }
  CHECK_THAT(RefusalOf("all_reduce {}", "sync { asynchronous {} }"),
             Contains(path + ": with sync { asynchronous {} } every tower pushes by itself"));
}

}  // namespace
}  // namespace lockstep
