#include "worker/data/pipeline.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "tests/unit/worker/data/data_files.h"

namespace lockstep::worker {
namespace {

using test::NumberedImages;

std::unique_ptr<Pipeline> Open(const DataDef& data, const PipelineOptions& options,
                               const ExampleSpec& spec = NumberedImages::Spec()) {
  auto pipeline = Pipeline::Open(data, spec, options);
  INFO(pipeline.status().ToString());
  REQUIRE(pipeline.ok());
  return *std::move(pipeline);
}

// All features and labels of a step, tower after tower.
struct Content {
  std::vector<float> features;
  std::vector<int32_t> labels;
  bool operator==(const Content&) const = default;
};

Content Read(Pipeline& pipeline, int64_t step) {
  const auto batches = pipeline.BatchesFor(GlobalStep(step));
  REQUIRE(batches.ok());
  Content content;
  for (const Batch& batch : **batches) {
    const auto features = batch.features.as<float>();
    const auto labels = batch.labels.as<int32_t>();
    content.features.insert(content.features.end(), features.begin(), features.end());
    content.labels.insert(content.labels.end(), labels.begin(), labels.end());
  }
  return content;
}

void Append(const Content& from, Content* to) {
  to->features.insert(to->features.end(), from.features.begin(), from.features.end());
  to->labels.insert(to->labels.end(), from.labels.begin(), from.labels.end());
}

// The numbers of the images of a step: each has its number in all pixels.
std::vector<int> Numbers(const Content& content) {
  std::vector<int> numbers;
  for (size_t i = 0; i < content.features.size(); i += 16) {
    numbers.push_back(static_cast<int>(content.features[i]));
  }
  return numbers;
}

PipelineOptions Options(uint32_t replica, uint32_t replicas, int64_t towers, int64_t batch) {
  return {.seed = 42,
          .replica = replica,
          .num_replicas = replicas,
          .batch_per_tower = batch,
          .towers = towers};
}

TEST_CASE("One, two, three and six replicas take exactly the same global batch, augmented alike") {
  NumberedImages files(50);
  files.data.mutable_augmentation()->set_shift(1);
  files.data.set_scale(0.25f);
  const auto whole = Open(files.data, Options(0, 1, 1, 12));
  for (uint32_t replicas : {1, 2, 3, 6}) {
    for (int64_t towers : {1, 2}) {
      std::vector<std::unique_ptr<Pipeline>> pipelines;
      for (uint32_t replica = 0; replica < replicas; ++replica) {
        pipelines.push_back(
            Open(files.data, Options(replica, replicas, towers, 12 / replicas / towers)));
      }
      for (int64_t step = 0; step < 10; ++step) {
        CAPTURE(replicas, towers, step);
        Content together;
        for (const auto& pipeline : pipelines) Append(Read(*pipeline, step), &together);
        CHECK(together == Read(*whole, step));
      }
    }
  }
}

TEST_CASE("Pipelines per tower give what one pipeline gives its towers, at a pace of their own") {
  NumberedImages files(50);
  files.data.mutable_augmentation()->set_shift(1);
  for (const DataDef::AutoShard auto_shard : {DataDef::RECORD, DataDef::OFF}) {
    files.data.set_auto_shard(auto_shard);
    const auto together = Open(files.data, Options(1, 2, 3, 2));
    const auto alone =
        Pipeline::OpenPerTower(files.data, NumberedImages::Spec(), Options(1, 2, 3, 2));
    REQUIRE(alone.ok());
    REQUIRE(alone->size() == 3);
    const Content third = Read(*(*alone)[1], 3);
    for (int64_t step = 0; step < 10; ++step) {
      Content one_by_one;
      for (const auto& pipeline : *alone) Append(Read(*pipeline, step), &one_by_one);
      CHECK(one_by_one == Read(*together, step));
    }
    CHECK(Read(*(*alone)[1], 3) == third);
  }
}

TEST_CASE("Batches straddle data epochs, and each data epoch has every example once") {
  NumberedImages files(50);
  const auto pipeline = Open(files.data, Options(0, 1, 2, 6));
  Content all;
  for (int64_t step = 0; step < 25; ++step) Append(Read(*pipeline, step), &all);
  const auto numbers = Numbers(all);
  REQUIRE(numbers.size() == 300);
  for (size_t i = 0; i < numbers.size(); ++i) CHECK(all.labels[i] == numbers[i] % 10);
  std::vector<std::vector<int>> epochs;
  for (int epoch = 0; epoch < 6; ++epoch) {
    epochs.emplace_back(numbers.begin() + epoch * 50, numbers.begin() + (epoch + 1) * 50);
    CHECK(std::set<int>(epochs.back().begin(), epochs.back().end()).size() == 50);
  }
  CHECK(std::set<std::vector<int>>(epochs.begin(), epochs.end()).size() == 6);
}

TEST_CASE("A batch larger than the data repeats them") {
  NumberedImages files(3);
  const auto pipeline = Open(files.data, Options(0, 1, 1, 8));
  const auto numbers = Numbers(Read(*pipeline, 0));
  for (int i = 0; i < 3; ++i) {
    CHECK(std::count(numbers.begin(), numbers.begin() + 6, i) == 2);
  }
}

TEST_CASE("A step jumped to equals the same step reached one by one") {
  NumberedImages files(50);
  files.data.mutable_augmentation()->set_shift(2);
  for (int64_t buffer : {0, 7}) {
    files.data.set_shuffle_buffer(buffer);
    const auto sequential = Open(files.data, Options(1, 2, 1, 4));
    std::vector<Content> steps;
    for (int64_t step = 0; step < 30; ++step) steps.push_back(Read(*sequential, step));
    const auto jumping = Open(files.data, Options(1, 2, 1, 4));
    for (int64_t step : {29, 0, 15, 16, 17, 3, 3, 20, 19, 28, 1}) {
      CAPTURE(buffer, step);
      CHECK(Read(*jumping, step) == steps[step]);
    }
  }
}

TEST_CASE("Order and augmentation follow the seed") {
  NumberedImages files(50);
  const auto read = [&](uint64_t seed) {
    auto options = Options(0, 1, 1, 10);
    options.seed = seed;
    return Read(*Open(files.data, options), 3);
  };
  CHECK(read(1) == read(1));
  CHECK(read(1).labels != read(2).labels);
  files.data.set_no_shuffle(true);
  CHECK(read(1) == read(2));
  files.data.mutable_augmentation()->set_shift(2);
  CHECK(read(1) == read(1));
  CHECK(read(1).features != read(2).features);
  CHECK(read(1).labels == read(2).labels);
}

TEST_CASE("Without shuffling the examples come as in the file") {
  NumberedImages files(50);
  files.data.set_no_shuffle(true);
  const auto pipeline = Open(files.data, Options(1, 2, 1, 5));
  CHECK(Numbers(Read(*pipeline, 0)) == std::vector<int>{5, 6, 7, 8, 9});
  CHECK(Numbers(Read(*pipeline, 5)) == std::vector<int>{5, 6, 7, 8, 9});
  CHECK(Numbers(Read(*pipeline, 4)) == std::vector<int>{45, 46, 47, 48, 49});
}

TEST_CASE("A shuffle buffer moves no example further forward than its size") {
  NumberedImages files(200);
  files.data.set_shuffle_buffer(10);
  const auto numbers = Numbers(Read(*Open(files.data, Options(0, 1, 1, 200)), 0));
  for (int place = 0; place < 200; ++place) CHECK(numbers[place] < place + 10);
  CHECK_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_CASE("Shapes of batches are those of the model, per tower") {
  NumberedImages files(50);
  const auto pipeline = Open(files.data, Options(0, 3, 2, 4));
  const auto batches = pipeline->BatchesFor(GlobalStep(0));
  REQUIRE(batches.ok());
  REQUIRE((*batches)->size() == 2);
  CHECK((*batches)->front().features.shape() == Shape({4, 4, 4, 1}));
  CHECK((*batches)->front().labels.shape() == Shape({4}));
  CHECK((*batches)->front().size() == 4);
  CHECK(pipeline->num_examples() == 50);
}

TEST_CASE("A regression reads one target per CSV line") {
  NumberedImages files(1);
  files.data.clear_idx();
  files.data.mutable_csv()->add_train(
      files.folder.Write("train.csv", "a,price,b\n1,0.5,2\n3,-1.5,4\n"));
  files.data.mutable_csv()->set_label_column("price");
  files.data.set_no_shuffle(true);
  const auto pipeline = Open(files.data, Options(0, 1, 1, 2), {Shape({2}), false, 1});
  const auto batches = pipeline->BatchesFor(GlobalStep(0));
  REQUIRE(batches.ok());
  const Batch& batch = (*batches)->front();
  CHECK(batch.labels.shape() == Shape({2, 1}));
  CHECK(batch.labels.as<float>()[1] == -1.5f);
  CHECK(batch.features.as<float>()[3] == 4);
}

TEST_CASE("Steps that cannot be are refused, and the pipeline goes on") {
  NumberedImages files(5);
  const auto pipeline = Open(files.data, Options(0, 1, 1, 2));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  CHECK(pipeline->BatchesFor(GlobalStep(-1)).status().code() == invalid);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CHECK(pipeline->BatchesFor(GlobalStep(kMax)).status().code() == invalid);
  CHECK(pipeline->BatchesFor(GlobalStep(kMax / 2)).status().code() == invalid);
  CHECK(pipeline->BatchesFor(GlobalStep(kMax / 2 - 1)).ok());
  CHECK(pipeline->BatchesFor(GlobalStep(0)).ok());
}

TEST_CASE("Pipelines that cannot be are refused with field, expected and got") {
  NumberedImages files(50);
  struct Case {
    std::function<void(DataDef&, ExampleSpec&, PipelineOptions&)> change;
    absl::StatusCode code;
    const char* message;
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  using D = DataDef&;
  using S = ExampleSpec&;
  using P = PipelineOptions&;
  const Case cases[] = {
      {[](D, S s, P) {
         s.input_shape = Shape({4, 4, 3});
       },
       invalid, "[4,4], the model's input"},
      {[](D, S s, P) { s.num_outputs = 5; }, invalid, "record 5: label 5"},
      {[](D d, S, P) { d.set_num_classes(11); }, invalid, "data.num_classes"},
      {[](D d, S, P) { d.set_shuffle_buffer(-1); }, invalid, "data.shuffle_buffer"},
      {[](D d, S, P) { d.set_prefetch(-2); }, invalid, "data.prefetch"},
      {[](D d, S, P) { d.set_scale(std::numeric_limits<float>::infinity()); }, invalid, "finite"},
      {[](D d, S, P) { d.set_offset(std::nanf("")); }, invalid, "finite"},
      {[](D d, S, P) { d.mutable_augmentation()->set_shift(-1); }, invalid, "0 to 3 pixels"},
      {[](D d, S, P) { d.mutable_augmentation()->set_shift(4); }, invalid, "got 4"},
      {[](D d, S, P) { d.set_no_shuffle(true), d.set_shuffle_buffer(3); }, invalid, "at most one"},
      {[](D, S, P p) { p.replica = 1; }, invalid, "replica: expected less than 1"},
      {[](D, S, P p) { p.batch_per_tower = 0; }, invalid, "batch per tower"},
      {[](D, S, P p) { p.batch_per_tower = int64_t{1} << 40; }, invalid, "at most 1073741824"},
      {[](D, S, P p) { p.batch_per_tower = int64_t{1} << 60; }, invalid, "got 1152921504606846976"},
      {[](D d, S, P) { d.set_prefetch(1025); }, invalid, "data.prefetch: expected 0 to 1024"},
      {[](D d, S, P) { d.mutable_idx()->set_train_images(0, "/nowhere"); },
       absl::StatusCode::kNotFound, "/nowhere"},
  };
  for (const Case& c : cases) {
    DataDef data = files.data;
    ExampleSpec spec = NumberedImages::Spec();
    PipelineOptions options = Options(0, 1, 1, 5);
    c.change(data, spec, options);
    const auto status = Pipeline::Open(data, spec, options).status();
    INFO(status.ToString());
    CHECK(status.code() == c.code);
    CHECK_THAT(std::string(status.message()), Catch::Contains(c.message));
  }
}

TEST_CASE("Rows without columns cannot be shifted") {
  NumberedImages files(1);
  files.data.clear_idx();
  files.data.mutable_csv()->add_train(files.folder.Write("train.csv", "a,b,label\n1,2,0\n"));
  files.data.mutable_csv()->set_label_column("label");
  files.data.mutable_augmentation()->set_shift(1);
  const auto status =
      Pipeline::Open(files.data, {Shape({2}), true, 2}, Options(0, 1, 1, 1)).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains("got examples of shape [2]"));
}

TEST_CASE("The test set is read in ranges, scaled and neither shuffled nor augmented") {
  NumberedImages files(1, 23);
  files.data.set_scale(0.5f);
  files.data.set_offset(1);
  files.data.mutable_augmentation()->set_shift(2);
  const auto set = TestSet::Open(files.data, NumberedImages::Spec());
  REQUIRE(set.ok());
  CHECK((*set)->num_examples() == 23);
  CHECK((*set)->has_labels());
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 23}, {7, 12}, {22, 23}, {5, 5}, {23, 23}}) {
    const auto batch = (*set)->Read(begin, end);
    REQUIRE(batch.ok());
    REQUIRE(batch->size() == end - begin);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t pixel = 0; pixel < 16; ++pixel) {
        CHECK(batch->features.as<float>()[(i - begin) * 16 + pixel] == (i - 1) * 0.5f);
      }
      CHECK(batch->labels.as<int32_t>()[i - begin] == i % 10);
    }
  }
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 3}, {3, 2}, {0, 24}, {24, 24}}) {
    CHECK((*set)->Read(begin, end).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("A test set without labels gives empty labels") {
  NumberedImages files(1, 3);
  files.data.mutable_idx()->clear_test_labels();
  const auto set = TestSet::Open(files.data, NumberedImages::Spec());
  REQUIRE(set.ok());
  CHECK_FALSE((*set)->has_labels());
  const auto batch = (*set)->Read(0, 3);
  REQUIRE(batch.ok());
  CHECK(batch->size() == 3);
  CHECK(batch->labels.num_elements() == 0);
}

TEST_CASE("A pipeline can be destroyed at any moment") {
  NumberedImages files(50);
  for (int64_t reads = 0; reads < 6; ++reads) {
    const auto pipeline = Open(files.data, Options(0, 1, 1, 50));
    for (int64_t step = 0; step < reads; ++step) CHECK_FALSE(Read(*pipeline, step).labels.empty());
  }
}

std::unique_ptr<Pipeline> OpenShared(const DataDef& data, int64_t towers, int64_t global_batch) {
  auto pipeline = Pipeline::OpenShared(
      data, NumberedImages::Spec(),
      {.seed = 42, .batch_per_tower = global_batch / towers, .towers = towers}, global_batch);
  REQUIRE(pipeline.ok());
  return *std::move(pipeline);
}

TEST_CASE("a share of the global batch is that of a job with as many replicas") {
  const NumberedImages images(20);
  const auto shared = OpenShared(images.data, 2, 12);
  CHECK_FALSE(shared->IsReady(GlobalStep(0)));
  CHECK(absl::IsFailedPrecondition(shared->BatchesFor(GlobalStep(0)).status()));
  int64_t step = 3;
  for (const auto& [total, position] :
       {std::pair(3u, 1u), std::pair(2u, 0u), std::pair(6u, 5u), std::pair(1u, 0u)}) {
    CAPTURE(total, position);
    REQUIRE(shared->UseShare({1, total, position}).ok());
    const auto fixed = Open(images.data, Options(position, total, 2, 6 / total));
    for (int i = 0; i < 3; ++i, ++step) CHECK(Read(*shared, step) == Read(*fixed, step));
  }
  CHECK(shared->num_examples() == 20);
}

TEST_CASE("batches lie in the memory that they were given") {
  const NumberedImages images(20);
  std::vector<const void*> made;
  const auto make = [&made](DType dtype, const Shape& shape) {
    Tensor tensor(dtype, shape);
    made.push_back(tensor.data());
    return tensor;
  };
  const auto shared = *Pipeline::OpenShared(
      images.data, NumberedImages::Spec(),
      {.seed = 42, .batch_per_tower = 6, .towers = 2, .make_tensor = make}, 12);
  for (const uint32_t total : {2u, 3u}) {
    made.clear();
    REQUIRE(shared->UseShare({1, total, 0}).ok());
    for (const Batch& batch : **shared->BatchesFor(GlobalStep(0))) {
      CHECK(std::ranges::count(made, batch.features.data()) == 1);
      CHECK(std::ranges::count(made, batch.labels.data()) == 1);
    }
  }
}

TEST_CASE("a share that cannot be is refused, and so is any of fixed replicas") {
  const NumberedImages images(20);
  const auto shared = OpenShared(images.data, 2, 12);
  const absl::Status status = shared->UseShare({7, 5, 0});
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("replica view 7") &&
                                                Catch::Contains("12 examples") &&
                                                Catch::Contains("got 5"));
  const auto fixed = Open(images.data, Options(0, 1, 1, 4));
  CHECK(absl::IsFailedPrecondition(fixed->UseShare({1, 1, 0})));
}

}  // namespace
}  // namespace lockstep::worker
