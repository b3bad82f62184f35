#include <google/protobuf/text_format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/worker/data/data_files.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {
namespace {

using test::NumberedImages;

struct Workers {
  uint32_t count = 1;
  int64_t towers = 1;
  int64_t batch = 1;
};

absl::StatusOr<std::unique_ptr<Pipeline>> Open(const DataDef& data, const Workers& workers,
                                               uint32_t worker) {
  return Pipeline::Open(data, NumberedImages::Spec(),
                        {.seed = 9,
                         .replica = worker,
                         .num_replicas = workers.count,
                         .batch_per_tower = workers.batch,
                         .towers = workers.towers});
}

DataDef With(const NumberedImages& files, const std::string& text) {
  DataDef data = files.data;
  REQUIRE(google::protobuf::TextFormat::MergeFromString(text, &data));
  return data;
}

// The numbers of a step's images, tower after tower; none behind the last step.
std::vector<int> Read(Pipeline& pipeline, int64_t step) {
  const auto batches = pipeline.BatchesFor(GlobalStep(step));
  if (!batches.ok()) return {};
  std::vector<int> numbers;
  for (const Batch& batch : **batches) {
    for (size_t i = 0; i < batch.features.as<float>().size(); i += 16) {
      numbers.push_back(static_cast<int>(batch.features.as<float>()[i]));
    }
  }
  return numbers;
}

// All steps that there are, at most 100.
std::vector<std::vector<int>> ReadSteps(const DataDef& data, const Workers& workers,
                                        uint32_t worker) {
  const auto pipeline = Open(data, workers, worker);
  INFO(pipeline.status().ToString());
  REQUIRE(pipeline.ok());
  std::vector<std::vector<int>> steps;
  while (steps.size() < 100) {
    auto step = Read(**pipeline, static_cast<int64_t>(steps.size()));
    if (step.empty()) break;
    steps.push_back(std::move(step));
  }
  return steps;
}

TEST_CASE("The way to a late step ends when the pipeline is cancelled") {
  const NumberedImages files(61);
  const DataDef data = With(files, "transform { repeat {} } transform { batch {} }");
  constexpr GlobalStep kLate(int64_t{1} << 50);
  const auto pipeline = *Open(data, {1, 1, 4}, 0);
  while (!pipeline->IsReady(GlobalStep(0))) std::this_thread::yield();
  absl::Status end;
  std::thread consumer([&] { end = pipeline->BatchesFor(kLate).status(); });
  // Until the consumer has passed over the first step.
  while (pipeline->IsReady(GlobalStep(0))) std::this_thread::yield();
  pipeline->Cancel();
  consumer.join();
  CHECK(absl::IsCancelled(end));
  CHECK(absl::IsCancelled(pipeline->BatchesFor(GlobalStep(5)).status()));
}

TEST_CASE("No example goes to two towers of a step or is lost, except by the rules") {
  constexpr int kExamples = 61;
  const NumberedImages files(kExamples);
  const std::string kTransforms[] = {
      "transform { shuffle { buffer: 9 } } transform { batch { drop_remainder: true } }",
      "transform { shuffle { buffer: 99 } } transform { shard {} } "
      "transform { batch { drop_remainder: true } }",
      "auto_shard: OFF transform { shard {} } transform { batch { drop_remainder: true } } "
      "transform { shuffle { buffer: 4 } } transform { prefetch { batches: 3 } }",
  };
  for (const std::string& transform : kTransforms) {
    const DataDef data = With(files, transform);
    for (const Workers& workers : {Workers{1, 1, 4}, {1, 3, 4}, {2, 2, 5}, {3, 1, 7}, {3, 3, 2}}) {
      CAPTURE(transform, workers.count, workers.towers, workers.batch);
      std::map<int, int> seen;
      int64_t read = 0;
      for (uint32_t worker = 0; worker < workers.count; ++worker) {
        const int64_t share = (kExamples - worker + workers.count - 1) / workers.count;
        const auto steps = ReadSteps(data, workers, worker);
        const int64_t batches = share / workers.batch;
        CHECK(static_cast<int64_t>(steps.size()) == batches / workers.towers);
        for (const std::vector<int>& step : steps) {
          for (const int number : step) ++seen[number], ++read;
        }
      }
      CHECK(static_cast<int64_t>(seen.size()) == read);  // none twice in the data epoch
    }
  }
}

TEST_CASE("Tower i of D takes batch k*D+i") {
  const NumberedImages files(23);
  const DataDef data = With(files, "transform { batch { drop_remainder: true } }");
  const std::vector<std::vector<int>> expected = {{0, 1, 2, 3, 4, 5, 6, 7, 8},
                                                  {9, 10, 11, 12, 13, 14, 15, 16, 17}};
  CHECK(ReadSteps(data, {.towers = 3, .batch = 3}, 0) == expected);
}

TEST_CASE("Transformed steps are the same in any order, and from any first step") {
  const NumberedImages files(40);
  DataDef data = With(files,
                      "augmentation { shift: 1 } transform { repeat {} } "
                      "transform { shuffle { buffer: 11 } } transform { map { function: 'shift' } }"
                      " transform { batch {} }");
  const Workers workers{.count = 2, .towers = 2, .batch = 3};
  const auto content = [](Pipeline& pipeline, int64_t step) {
    std::vector<float> all;
    for (const Batch& batch : **pipeline.BatchesFor(GlobalStep(step))) {
      const auto features = batch.features.as<float>();
      all.insert(all.end(), features.begin(), features.end());
    }
    return all;
  };
  const auto sequential = Open(data, workers, 1);
  REQUIRE(sequential.ok());
  std::vector<std::vector<float>> steps;
  for (int64_t step = 0; step < 40; ++step) steps.push_back(content(**sequential, step));
  const auto jumping = Open(data, workers, 1);
  for (const int64_t step : {31, 0, 1, 39, 38, 5, 5, 7}) {
    CAPTURE(step);
    CHECK(content(**jumping, step) == steps[step]);
  }
  CHECK(content(**Open(data, workers, 0), 0) != steps[0]);
}

TEST_CASE(
    "With auto_shard FILE a worker reads its own files, with OFF all in an order of its own") {
  NumberedImages files(1);
  auto* idx = files.data.mutable_idx();
  idx->clear_train_images();
  idx->clear_train_labels();
  for (uint8_t file = 0; file < 5; ++file) {
    std::string pixels;
    for (int image = 0; image < 4; ++image) pixels.append(16, static_cast<char>(4 * file + image));
    idx->add_train_images(
        files.folder.Write(absl::StrCat("x", file), lockstep::test::Idx(0x08, {4, 4, 4}, pixels)));
    idx->add_train_labels(
        files.folder.Write(absl::StrCat("y", file), lockstep::test::CountingIdx({4}, 10)));
  }
  const Workers workers{.count = 2, .towers = 2, .batch = 2};
  const auto set_of = [&](const DataDef& data, uint32_t worker, int64_t steps) {
    const auto pipeline = Open(data, workers, worker);
    INFO(pipeline.status().ToString());
    REQUIRE(pipeline.ok());
    std::multiset<int> all;
    for (int64_t step = 0; step < steps; ++step) {
      for (const int number : Read(**pipeline, step)) all.insert(number);
    }
    return all;
  };
  for (const std::string transform :
       {"", "transform { shuffle { buffer: 3 } } transform { batch { drop_remainder: true } }"}) {
    CAPTURE(transform);
    const DataDef data = With(files, absl::StrCat("auto_shard: FILE ", transform));
    CHECK(set_of(data, 0, 3) == std::multiset<int>{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19});
    CHECK(set_of(data, 1, 2) == std::multiset<int>{4, 5, 6, 7, 12, 13, 14, 15});
  }
  const DataDef off = With(files, "auto_shard: OFF");
  const std::multiset<int> pass = set_of(off, 0, 10);
  CHECK(pass.size() == 40);
  for (int number = 0; number < 20; ++number) CHECK(pass.count(number) == 2);
  CHECK(Read(**Open(off, workers, 0), 0) != Read(**Open(off, workers, 1), 0));

  const DataDef file = With(files, "auto_shard: FILE");
  const auto status = Open(file, {.count = 6, .towers = 1, .batch = 1}, 0).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("expected at least 6 training files, one for each worker, got 5"));
}

}  // namespace
}  // namespace lockstep::worker
