// What a worker trains on, and in which memory of the host it is.
#include "worker/service/training_data.h"

#include <catch2/catch.hpp>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/unit/worker/data/data_files.h"
#include "tests/unit/worker/tower/models.h"
#include "worker/device/cpu/cpu_device.h"

namespace lockstep::worker {
namespace {

constexpr char kModel[] = R"pb(
  input_shape: [ 4, 4, 1 ]
  layers {
    name: "flat"
    flatten {}
  }
  layers {
    name: "scores"
    dense { units: 10 }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

// Whether the first batch of a worker in a job whose workers come and go is pinned.
bool IsPinned(const DataDef& data, Device* device) {
  RegisterTaskReply registration;
  *registration.mutable_job()->mutable_data() = data;
  registration.mutable_job()->set_global_batch(12);
  registration.mutable_job()->set_batch_per_tower(12);
  registration.mutable_job()->mutable_sync()->set_min_replicas(1);
  registration.set_total_num_replicas(2);
  registration.mutable_share();
  const auto training = OpenTrainingData(registration, 0, GraphOf(kModel), device);
  REQUIRE(training.ok());
  Pipeline* const pipeline = training->by_trainer[0].get();
  REQUIRE(pipeline->UseShare({1, 2, 0}).ok());
  const Batch& batch = (*pipeline->BatchesFor(GlobalStep(0)))->front();
  CHECK(batch.size() == 6);
  CHECK(batch.features.is_borrowed() == batch.labels.is_borrowed());
  return batch.features.is_borrowed();
}

TEST_CASE("batches of a job whose workers come and go are pinned for a GPU, not for a CPU") {
  const test::NumberedImages files(20);
  const auto gpu = lockstep::test::MakeFakeGpu(1);
  CHECK(IsPinned(files.data, gpu.get()));
  CpuDevice cpu(/*threads=*/1);
  CHECK_FALSE(IsPinned(files.data, &cpu));
}

}  // namespace
}  // namespace lockstep::worker
