// What a worker trains on, and in which memory of the host it is.
#include "worker/service/training_data.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/tensor/tensor.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/unit/worker/data/data_files.h"
#include "tests/unit/worker/tower/models.h"
#include "worker/device/cpu/cpu_device.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using lockstep::test::FakeDriver;

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

// Of worker 1 of 2, whose chief has counted so many examples in each file.
absl::Status OpenCounted(DataDef data, DataDef::AutoShard shard, std::vector<int64_t> examples) {
  RegisterTaskReply registration;
  data.set_auto_shard(shard);
  *registration.mutable_job()->mutable_data() = std::move(data);
  registration.mutable_job()->set_batch_per_tower(2);
  registration.set_total_num_replicas(2);
  for (const int64_t count : examples) registration.add_training_examples(count);
  CpuDevice cpu(/*threads=*/1);
  return OpenTrainingData(registration, 1, GraphOf(kModel), &cpu).status();
}

TEST_CASE("files that have other examples than the chief has counted are refused") {
  const test::NumberedImages files(20);
  CHECK(OpenCounted(files.data, DataDef::RECORD, {20}).ok());
  CHECK(OpenCounted(files.data, DataDef::RECORD, {}).ok());  // an earlier chief does not say
  const absl::Status fewer = OpenCounted(files.data, DataDef::RECORD, {1200});
  CHECK(ExitCodeFor(fewer) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(fewer.message()),
             StartsWith("data: the training files of this worker have 20 examples, the chief has "
                        "counted 1,200 in them. Remedy: "));
}

TEST_CASE("of files that are divided over the workers those of this one count") {
  const test::NumberedImages files(20);
  DataDef data = files.data;
  DataDef more = files.data;
  data.MergeFrom(more);
  CHECK(OpenCounted(data, DataDef::FILE, {7, 20}).ok());
  CHECK_FALSE(OpenCounted(data, DataDef::FILE, {20, 7}).ok());
}

TEST_CASE("batches that go ahead to another memory are counted there and here") {
  const test::NumberedImages files(20);
  RegisterTaskReply registration;
  *registration.mutable_job()->mutable_data() = files.data;
  registration.mutable_job()->mutable_data()->set_prefetch(1024);
  registration.mutable_job()->set_batch_per_tower(int64_t{1} << 29);
  registration.set_total_num_replicas(1);
  CpuDevice cpu(/*threads=*/1);
  const auto gpu = lockstep::test::MakeFakeGpu(1);
  const auto buffers_on = [&](Device* device) {
    return std::string(
        OpenTrainingData(registration, 0, GraphOf(kModel), device).status().message());
  };
  CHECK_THAT(buffers_on(&cpu), Contains("got 1025 buffers of 536870912 examples"));
  // The one in use, and the one of the next step.
  CHECK_THAT(buffers_on(gpu.get()), Contains("got 1027 buffers of 536870912 examples"));
}

// What images of 4 x 4 and their labels take on a GPU.
uint64_t BytesOnGpu(uint64_t examples) {
  return Tensor::RoomFor(examples * 16 * sizeof(float)) +
         Tensor::RoomFor(examples * sizeof(int32_t));
}

RegisterTaskReply OfTwoTowers(const DataDef& data) {
  RegisterTaskReply registration;
  *registration.mutable_job()->mutable_data() = data;
  registration.mutable_job()->set_towers(2);
  registration.mutable_job()->set_batch_per_tower(3);
  registration.set_total_num_replicas(1);
  return registration;
}

TEST_CASE("batches that go ahead to a GPU are refused when a worker joins, or have memory there") {
  constexpr uint64_t kBatches = 2 * 2;  // in use and ahead, of two towers
  const test::NumberedImages files(20);
  const auto gpu = lockstep::test::MakeFakeGpu(1);
  const RegisterTaskReply registration = OfTwoTowers(files.data);
  const ModelGraph graph = GraphOf(kModel);
  FakeDriver::Current().SetMemory(kBatches * BytesOnGpu(3) - 1);
  const absl::Status refused = OpenTrainingData(registration, 0, graph, gpu.get()).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()),
             StartsWith(absl::StrCat("batches that are copied ahead, 2 of ", BytesOnGpu(3),
                                     " bytes for each tower: cuda:0: no memory for ", BytesOnGpu(3),
                                     " bytes: ")) &&
                 Contains("bytes are free. Remedy: a smaller batch per tower"));
  CHECK(gpu->use().memory == 0);
  FakeDriver::Current().SetMemory(kBatches * BytesOnGpu(3));
  const auto data = OpenTrainingData(registration, 0, graph, gpu.get());
  REQUIRE(data.ok());
  CHECK(gpu->use().memory == kBatches * BytesOnGpu(3));
  for (int64_t step = 0; step < 5; ++step) {
    CHECK(data->by_trainer[0]->BatchesFor(GlobalStep(step)).ok());
  }
  CHECK(gpu->use().memory == kBatches * BytesOnGpu(3));
}

TEST_CASE("loads that a GPU has no memory for are refused when a worker joins") {
  constexpr uint64_t kOfTower = 6;  // rows
  const test::NumberedImages files(20);
  const auto gpu = lockstep::test::MakeFakeGpu(1);
  RegisterTaskReply registration = OfTwoTowers(files.data);
  LocalSyncDef* const loads = registration.mutable_job()->mutable_local_sync();
  loads->set_load(2 * kOfTower);
  loads->set_max_per_device_batch_size(3);
  loads->set_passes(1);
  const ModelGraph graph = GraphOf(kModel);
  FakeDriver::Current().SetMemory(2 * BytesOnGpu(kOfTower) - 1);
  const absl::Status refused = OpenTrainingData(registration, 0, graph, gpu.get()).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(
      std::string(refused.message()),
      StartsWith(absl::StrCat("the load of tower 1: cuda:0: no memory for ", BytesOnGpu(kOfTower),
                              " bytes: ")) &&
          Contains("bytes are free. Remedy: a smaller batch per tower, or fewer towers on this "
                   "GPU, or a lower local_sync.load"));
  FakeDriver::Current().SetMemory(2 * BytesOnGpu(kOfTower));
  const auto data = OpenTrainingData(registration, 0, graph, gpu.get());
  REQUIRE(data.ok());
  CHECK(gpu->use().memory == 2 * BytesOnGpu(kOfTower));
  for (int64_t step = 0; step < 8; ++step) {  // into the third load
    CHECK(data->by_trainer[0]->BatchesFor(GlobalStep(step)).ok());
  }
  CHECK(gpu->use().memory == 2 * BytesOnGpu(kOfTower));
}

TEST_CASE("a test set that has other examples than the chief has counted is refused") {
  const test::NumberedImages files(20, 5);
  const ModelGraph graph = GraphOf(kModel);
  RegisterTaskReply registration;
  *registration.mutable_job()->mutable_data() = files.data;
  registration.set_test_examples(5);
  const auto same = OpenTestSet(registration, graph);
  REQUIRE(same.ok());
  CHECK((*same)->num_examples() == 5);
  registration.set_test_examples(6);
  const absl::Status other = OpenTestSet(registration, graph).status();
  CHECK(ExitCodeFor(other) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(other.message()),
             StartsWith("data: the test files of this worker have 5 examples, the chief has "
                        "counted 6 in them. Remedy: "));
}

}  // namespace
}  // namespace lockstep::worker
