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

// Each pipeline keeps a permutation of the examples, and each of an asynchronous tower its own.
TEST_CASE("the orders of the examples count beside the batches") {
  test::NumberedImages files(50);
  files.data.set_prefetch(1024);
  const PipelineOptions options = {.batch_per_tower = int64_t{1} << 28, .towers = 2};
  const ExampleSpec spec = test::NumberedImages::Spec();
  const auto order_in = [](const absl::Status& status, const char* order) {
    CHECK_THAT(std::string(status.message()), Contains(order));
  };
  order_in(Pipeline::Open(files.data, spec, options).status(),
           "41822244044800 bytes, and 400 bytes of example numbers (orders of 50: 1)");
  order_in(Pipeline::OpenPerTower(files.data, spec, options).status(),
           "41822244044800 bytes, and 800 bytes of example numbers (orders of 50: 2)");
  order_in(Pipeline::OpenShared(files.data, spec, options, int64_t{1} << 29).status(),
           "41822244044800 bytes, and 400 bytes of example numbers (orders of 50: 1)");
}

TEST_CASE("batches that another pipeline has a copy of in host memory count twice") {
  test::NumberedImages files(50);
  files.data.set_prefetch(1024);
  const PipelineOptions options = {
      .batch_per_tower = int64_t{1} << 28, .towers = 2, .copied_batches = 2};
  const absl::Status status =
      Pipeline::Open(files.data, test::NumberedImages::Spec(), options).status();
  CHECK_THAT(std::string(status.message()), Contains("1027 buffers of 536870912 examples"));
}

}  // namespace
}  // namespace lockstep::worker
