// How the pipelines of a worker check the memory of their batches.
#include "worker/data/batch_memory.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/worker/data/data_files.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

TEST_CASE("batches that do not fit the memory are refused before any memory is taken") {
  test::NumberedImages files(50);
  files.data.set_prefetch(1024);
  // 32 GiB of features in a batch: each fits, 1025 of them do not.
  const PipelineOptions options = {.batch_per_tower = int64_t{1} << 28, .towers = 2};
  const ExampleSpec spec = test::NumberedImages::Spec();
  for (const absl::Status& status :
       {Pipeline::Open(files.data, spec, options).status(),
        Pipeline::OpenPerTower(files.data, spec, options).status(),
        Pipeline::OpenShared(files.data, spec, options, int64_t{1} << 29).status()}) {
    INFO(status.ToString());
    CHECK(absl::IsResourceExhausted(status));
    CHECK_THAT(std::string(status.message()),
               Contains("global_batch") && Contains("Remedy: lower it or data.prefetch") &&
                   Contains("1025 buffers of 536870912 examples of 76 bytes, "
                            "41822244044800 bytes"));
  }
}

}  // namespace
}  // namespace lockstep::worker
