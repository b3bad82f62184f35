// Loads of a GPU, over a driver that the host imitates.
#include <catch2/catch.hpp>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/unit/worker/data/data_files.h"
#include "worker/local_sync/local_sync_pipeline.h"

namespace lockstep::worker {
namespace {

TEST_CASE("loads are copied to a GPU from pinned memory, into that of the load before") {
  const test::NumberedImages files(96);
  const auto gpu = lockstep::test::MakeFakeGpu(1);
  const auto pipeline = *LocalSyncPipeline::Open(
      files.data, test::NumberedImages::Spec(),
      {.seed = 42, .loads = {.load = 24, .max_per_device_batch_size = 6, .passes = 1, .towers = 2}},
      gpu.get());
  const lockstep::test::FakeDriver& driver = lockstep::test::FakeDriver::Current();
  REQUIRE(pipeline->BatchesFor(GlobalStep(0)).ok());
  const int64_t allocations = driver.allocations();
  for (int64_t step = 1; step < 6; ++step) {
    REQUIRE(pipeline->BatchesFor(GlobalStep(step)).ok());
  }
  REQUIRE(pipeline->Report().loads == 3);
  CHECK(driver.allocations() == allocations);
  CHECK(driver.copies_to_device() == 3 * 2 * 2);  // features and labels of two towers
  CHECK(driver.copies_from_pageable() == 0);
}

}  // namespace
}  // namespace lockstep::worker
