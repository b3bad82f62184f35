#include "worker/local_sync/local_sync_pipeline.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/data/data_files.h"
#include "tests/unit/worker/local_sync/read_back.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;
using test::NumberedImages;

LocalSyncPipelineOptions Options(int64_t load, int64_t most, int64_t passes, int64_t towers = 2,
                                 int64_t workers = 1) {
  return {.seed = 42,
          .replica = 0,
          .loads = {.load = load,
                    .max_per_device_batch_size = most,
                    .passes = passes,
                    .towers = towers,
                    .workers = workers}};
}

struct Opened {
  Opened(const DataDef& data, const LocalSyncPipelineOptions& options)
      : device(lockstep::test::MakeTestDevice(1)) {
    auto made = LocalSyncPipeline::Open(data, NumberedImages::Spec(), options, device.get());
    INFO(made.status());
    REQUIRE(made.ok());
    pipeline = *std::move(made);
  }
  LocalSyncPipeline* operator->() { return pipeline.get(); }

  // The numbers of the images of a step, tower after tower.
  std::vector<int> Numbers(int64_t step) {
    const auto batches = pipeline->BatchesFor(GlobalStep(step));
    REQUIRE(batches.ok());
    std::vector<int> numbers;
    for (const Batch& batch : **batches) {
      const std::span<const float> pixels = batch.feature_rows().as<float>();
      for (size_t i = 0; i < pixels.size(); i += 16) numbers.push_back(static_cast<int>(pixels[i]));
    }
    return numbers;
  }

  const std::shared_ptr<Device> device;
  std::unique_ptr<LocalSyncPipeline> pipeline;
};

std::vector<int> Sorted(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

TEST_CASE("loads of one batch are the batches of a job without loads, on several workers too") {
  const NumberedImages files(96);
  for (const int64_t replica : {0, 1}) {
    LocalSyncPipelineOptions options = Options(24, 6, 1, 2, 2);
    options.replica = replica;
    Opened loads(files.data, options);
    const auto plain = *Pipeline::Open(files.data, NumberedImages::Spec(),
                                       {.seed = 42,
                                        .replica = static_cast<uint32_t>(replica),
                                        .num_replicas = 2,
                                        .batch_per_tower = 6,
                                        .towers = 2});
    for (int64_t step = 0; step < 9; ++step) {  // into the third data epoch
      std::vector<int> expected;
      for (const Batch& batch : **plain->BatchesFor(GlobalStep(step))) {
        const std::span<const float> pixels = batch.features.as<float>();
        for (size_t i = 0; i < pixels.size(); i += 16) {
          expected.push_back(static_cast<int>(pixels[i]));
        }
      }
      CHECK(loads.Numbers(step) == expected);
    }
  }
}

TEST_CASE("each pass takes each row of a load once, in an order of its own") {
  const NumberedImages files(64);
  Opened loads(files.data, Options(32, 2, 4));
  const int64_t batches = loads->schedule().plan(0).num_batches();
  REQUIRE(batches == 8);
  std::vector<std::vector<int>> passes(4);
  for (int64_t step = 0; step < 4 * batches; ++step) {
    const std::vector<int> numbers = loads.Numbers(step);
    std::vector<int>& pass = passes[step / batches];
    pass.insert(pass.end(), numbers.begin(), numbers.end());
  }
  std::vector<int> rows = Sorted(passes[0]);
  CHECK(std::ranges::adjacent_find(rows) == rows.end());
  for (int i = 1; i < 4; ++i) {
    CHECK(Sorted(passes[i]) == rows);
    CHECK(passes[i] != passes[i - 1]);
  }
  const std::vector<int> next = loads.Numbers(4 * batches);
  for (const int number : next) CHECK(std::ranges::find(rows, number) == rows.end());
}

TEST_CASE("a pipeline that begins within a load gives what one gives that came there") {
  const NumberedImages files(70);  // loads of 32, 32 and 6 rows
  Opened all(files.data, Options(32, 4, 3));
  std::vector<std::vector<int>> expected;
  for (int64_t step = 0; step < 60; ++step) expected.push_back(all.Numbers(step));
  for (const int64_t first : {1, 7, 13, 25, 29, 44}) {
    Opened later(files.data, Options(32, 4, 3));
    for (int64_t step = first; step < 60; ++step) CHECK(later.Numbers(step) == expected[step]);
  }
}

TEST_CASE("the last load of a data epoch is smaller, and what towers cannot share is left out") {
  const NumberedImages files(71);
  Opened loads(files.data, Options(32, 4, 1));
  CHECK(loads.Numbers(7).size() == 8);
  CHECK(loads.Numbers(8).size() == 6);  // 7 rows for two towers
  CHECK(loads.Numbers(9).size() == 8);
}

TEST_CASE("between two loads towers receive nothing, and the report says what they have") {
  const NumberedImages files(64);
  Opened loads(files.data, Options(32, 4, 2));
  CHECK(loads->Report().loads == 0);
  loads.Numbers(0);
  const LoadReport first = loads->Report();
  CHECK(first.loads == 1);
  CHECK(first.rows == 32);
  CHECK(first.passes == 2);
  CHECK(first.pass == 0);
  CHECK(first.per_device_batch_size == 4);
  CHECK(first.bytes_to_towers == 32 * (16 * sizeof(float) + sizeof(int32_t)));
  for (int64_t step = 1; step < 8; ++step) loads.Numbers(step);
  CHECK(loads->Report().bytes_to_towers == first.bytes_to_towers);
  CHECK(loads->Report().pass == 1);
  CHECK(loads->IsReady(GlobalStep(3)));
  loads.Numbers(8);
  CHECK(loads->Report().loads == 2);
  CHECK(loads->Report().bytes_to_towers == 2 * first.bytes_to_towers);
}

TEST_CASE("loads that cannot be are refused, and so are steps that cannot be counted") {
  const NumberedImages files(64);
  const auto device = lockstep::test::MakeTestDevice(1);
  const auto error = [&](const LocalSyncPipelineOptions& options) {
    const absl::Status status =
        LocalSyncPipeline::Open(files.data, NumberedImages::Spec(), options, device.get()).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK_THAT(error(Options(33, 4, 1, 2, 2)), Contains("local_sync.load: expected a multiple of 2"));
  CHECK_THAT(error(Options(1, 4, 1)), Contains("Must load at least 1 tuple sequence per device"));
  CHECK_THAT(error(Options(1000, 4, 1, 65)), Contains("got 64 examples in the data"));
  Opened loads(files.data, Options(32, 4, 2));
  CHECK(absl::IsInvalidArgument(loads->BatchesFor(GlobalStep(-1)).status()));
}

TEST_CASE("loads that do not fit the memory are refused before any memory is taken") {
  NumberedImages files(64);
  StateInputData* const state = files.data.add_state_inputs();
  state->set_name("h");
  state->set_zeros(true);
  ExampleSpec spec = NumberedImages::Spec();
  spec.state_inputs = {{"h", int64_t{1} << 38}};
  const auto device = lockstep::test::MakeTestDevice(1);
  const absl::Status status =
      LocalSyncPipeline::Open(files.data, spec, Options(32, 4, 1), device.get()).status();
  INFO(status.ToString());
  CHECK(absl::IsResourceExhausted(status));
  CHECK_THAT(std::string(status.message()),
             Contains("local_sync.load: ") && Contains("2 buffers of 32 examples"));
}

// Sequences of 3 steps [2] with a state [1]: step t of sequence s has the numbers 3s + t, the state
// is s.
TEST_CASE("sequences come with their states, in batches of whole sequences") {
  const lockstep::test::TemporaryFolder folder;
  std::string csv = "a,b,y\n", states = "h\n";
  for (int s = 0; s < 20; ++s) {
    absl::StrAppend(&states, s, "\n");
    for (int t = 0; t < 3; ++t) absl::StrAppend(&csv, 3 * s + t, ",", 3 * s + t, ",", t, "\n");
  }
  DataDef data;
  data.mutable_csv()->add_train(folder.Write("steps.csv", csv));
  data.mutable_csv()->set_label_column("y");
  StateInputData* const h = data.add_state_inputs();
  h->set_name("h");
  h->add_train(folder.Write("states.csv", states));
  ExampleSpec spec{.input_shape = Shape({3, 2}), .classifier = true, .num_outputs = 3};
  spec.labels_per_example = 3;
  spec.state_inputs = {{"h", 1}};

  const auto device = lockstep::test::MakeTestDevice(1);
  const auto pipeline = LocalSyncPipeline::Open(data, spec, Options(30, 7, 2), device.get());
  INFO(pipeline.status());
  REQUIRE(pipeline.ok());
  // 10 sequences of each load, of which 2 towers take 2 at a time: 8.
  std::vector<int> seen;
  for (int64_t step = 0; step < 8; ++step) {
    for (const Batch& batch : **(*pipeline)->BatchesFor(GlobalStep(step))) {
      REQUIRE(batch.loaded->state_inputs.size() == 1);
      CHECK(batch.size() == 2);
      CHECK(batch.loaded->features.shape == Shape({2, 3, 2}));
      CHECK(batch.loaded->labels.shape == Shape({2, 3}));
      const std::vector<float> first =
          lockstep::test::ReadBack(device.get(), batch.loaded->state_inputs[0]);
      const std::vector<float> steps =
          lockstep::test::ReadBack(device.get(), batch.loaded->features);
      for (size_t i = 0; i < first.size(); ++i) {
        for (int k = 0; k < 6; ++k) CHECK(steps[6 * i + k] == 3 * first[i] + k / 2);
        seen.push_back(static_cast<int>(first[i]));
      }
    }
  }
  // Two passes over each of two loads.
  for (int load = 0; load < 2; ++load) {
    const auto pass = [&](int number) {
      return Sorted(
          {seen.begin() + 16 * load + 8 * number, seen.begin() + 16 * load + 8 * number + 8});
    };
    const std::vector<int> first = pass(0);
    CHECK(first == pass(1));
    CHECK(std::ranges::adjacent_find(first) == first.end());
  }
}

// Sequence s is one line of (s, 2s), with the state s.
TEST_CASE("sequences of one step come as such, one from each line") {
  const lockstep::test::TemporaryFolder folder;
  std::string csv = "a,b,y\n", states = "h\n";
  for (int s = 0; s < 8; ++s) {
    absl::StrAppend(&states, s, "\n");
    absl::StrAppend(&csv, s, ",", 2 * s, ",1\n");
  }
  DataDef data;
  data.mutable_csv()->add_train(folder.Write("steps.csv", csv));
  data.mutable_csv()->set_label_column("y");
  StateInputData* const h = data.add_state_inputs();
  h->set_name("h");
  h->add_train(folder.Write("states.csv", states));
  ExampleSpec spec{.input_shape = Shape({1, 2}), .classifier = true, .num_outputs = 3};
  spec.state_inputs = {{"h", 1}};
  const auto device = lockstep::test::MakeTestDevice(1);
  const auto pipeline = LocalSyncPipeline::Open(data, spec, Options(8, 2, 1), device.get());
  INFO(pipeline.status());
  REQUIRE(pipeline.ok());
  std::vector<int> seen;
  for (int64_t step = 0; step < 2; ++step) {
    for (const Batch& batch : **(*pipeline)->BatchesFor(GlobalStep(step))) {
      CHECK(batch.loaded->features.shape == Shape({2, 1, 2}));
      const std::vector<float> first =
          lockstep::test::ReadBack(device.get(), batch.loaded->state_inputs[0]);
      const std::vector<float> steps =
          lockstep::test::ReadBack(device.get(), batch.loaded->features);
      for (size_t i = 0; i < first.size(); ++i) {
        CHECK(steps[2 * i] == first[i]);
        CHECK(steps[2 * i + 1] == 2 * first[i]);
        seen.push_back(static_cast<int>(first[i]));
      }
    }
  }
  CHECK(Sorted(seen) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

}  // namespace
}  // namespace lockstep::worker
