// What every kind of dataset keeps, however it is divided over workers and towers. That files are
// read right is in tests/unit/common/dataset; a kind that is missing here fails the first case.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {
namespace {

constexpr int kExamples = 13;  // a prime: batches end anywhere

struct Dataset {
  std::string kind;  // field of DataDef
  DataDef data;
  ExampleSpec spec;
  int first_feature = 1;  // of example n: n times this
};

class Datasets {
 public:
  Datasets() {
    Dataset idx = {.kind = "idx", .spec = {.input_shape = Shape({2, 2, 1}), .num_outputs = 10}};
    std::string pixels;
    std::string lines = "a,b,label\n";
    std::string text;
    for (int i = 0; i < kExamples; ++i) {
      pixels.append(4, static_cast<char>(i));
      absl::StrAppend(&lines, i, ",", -i, ",", i % 3, "\n");
    }
    for (int i = 0; i <= 2 * kExamples; ++i) text.push_back(static_cast<char>('A' + i));
    idx.data.mutable_idx()->add_train_images(
        folder_.Write("images", lockstep::test::Idx(0x08, {kExamples, 2, 2}, pixels)));
    idx.data.mutable_idx()->add_train_labels(
        folder_.Write("labels", lockstep::test::CountingIdx({kExamples}, /*modulus=*/10)));
    Dataset csv = {.kind = "csv", .spec = {.input_shape = Shape({2}), .num_outputs = 3}};
    csv.data.mutable_csv()->add_train(folder_.Write("train.csv", lines));
    csv.data.mutable_csv()->set_label_column(std::string("label"));
    Dataset characters = {.kind = "text",
                          .spec = {.input_shape = Shape({2}),
                                   .num_outputs = 2 * kExamples + 1,
                                   .labels_per_example = 2},
                          .first_feature = 2};
    characters.data.mutable_text()->set_path(folder_.Write("text", text));
    characters.data.mutable_text()->set_length(2);
    characters.data.mutable_text()->set_held_out(0);
    all_ = {idx, csv, characters};
  }
  const std::vector<Dataset>& all() const { return all_; }

 private:
  const lockstep::test::TemporaryFolder folder_;
  std::vector<Dataset> all_;
};

// A step of one worker, tower after tower.
struct Examples {
  std::vector<int64_t> numbers;
  std::vector<float> features;  // the first of each example
  bool operator==(const Examples&) const = default;
};

std::unique_ptr<Pipeline> Open(const Dataset& dataset, const PipelineOptions& options) {
  auto pipeline = Pipeline::Open(dataset.data, dataset.spec, options);
  INFO(pipeline.status());
  REQUIRE(pipeline.ok());
  return *std::move(pipeline);
}

Examples Read(Pipeline& pipeline, int64_t step, int64_t batch) {
  const auto batches = pipeline.BatchesFor(GlobalStep(step));
  REQUIRE(batches.ok());
  Examples examples;
  for (const Batch& of_tower : **batches) {
    REQUIRE(of_tower.size() == batch);
    const auto features = of_tower.features.as<float>();
    const size_t width = features.size() / batch;
    for (int64_t i = 0; i < batch; ++i) {
      examples.numbers.push_back(of_tower.example_numbers()[i]);
      examples.features.push_back(features[i * width]);
    }
  }
  return examples;
}

// Workers, towers of each, batch of each tower; whether each worker reads everything.
struct Division {
  uint32_t workers;
  int64_t towers;
  int64_t batch;
  bool is_off;
};

template <typename Check>
void ForEach(const Check& check) {
  const Datasets datasets;
  for (Dataset dataset : datasets.all()) {
    for (const Division& of :
         {Division{1, 1, 1, false}, Division{1, 3, 2, false}, Division{2, 1, 5, false},
          Division{3, 2, 1, false}, Division{9, 1, 1, false}, Division{1, 1, 13, false},
          Division{1, 1, 14, false}, Division{2, 2, 3, true}}) {
      CAPTURE(dataset.kind, of.workers, of.towers, of.batch, of.is_off);
      dataset.data.set_auto_shard(of.is_off ? DataDef::OFF : DataDef::RECORD);
      const auto options = [&](uint32_t worker) {
        return PipelineOptions{.seed = 5,
                               .replica = worker,
                               .num_replicas = of.workers,
                               .batch_per_tower = of.batch,
                               .towers = of.towers};
      };
      check(dataset, of, options);
    }
  }
}

TEST_CASE("every kind of dataset is here") {
  const Datasets datasets;
  std::set<std::string> here;
  for (const Dataset& dataset : datasets.all()) here.insert(dataset.kind);
  std::set<std::string> kinds;
  for (int i = 0; i < DataDef::descriptor()->field_count(); ++i) {
    // A dataset is a message of its own that comes once; these two change one.
    const auto* const field = DataDef::descriptor()->field(i);
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    if (field->name() != "augmentation") kinds.insert(field->name());
  }
  CHECK(here == kinds);
}

TEST_CASE("a step is the same whenever and by whomever it is asked for") {
  ForEach([](const Dataset& dataset, const Division& of, const auto& options) {
    for (uint32_t worker = 0; worker < of.workers; ++worker) {
      const auto pipeline = Open(dataset, options(worker));
      std::vector<Examples> steps;
      for (int64_t step = 0; step < 6; ++step) steps.push_back(Read(*pipeline, step, of.batch));
      const auto later = Open(dataset, options(worker));
      for (const int64_t step : {4, 1, 5, 5, 0}) CHECK(Read(*later, step, of.batch) == steps[step]);
    }
  });
}

TEST_CASE("every example comes equally often, to one worker or to each") {
  ForEach([](const Dataset& dataset, const Division& of, const auto& options) {
    // As many steps as there are examples take each of them once for each place in a step.
    std::vector<int64_t> total(kExamples);
    for (uint32_t worker = 0; worker < of.workers; ++worker) {
      const auto pipeline = Open(dataset, options(worker));
      CHECK(pipeline->num_examples() == kExamples);
      std::vector<int64_t> own(kExamples);
      for (int64_t step = 0; step < kExamples; ++step) {
        for (const int64_t number : Read(*pipeline, step, of.batch).numbers) ++own.at(number);
      }
      for (int i = 0; i < kExamples; ++i) total[i] += own[i];
      if (of.is_off) CHECK(own == std::vector<int64_t>(kExamples, of.towers * of.batch));
    }
    CHECK(total == std::vector<int64_t>(kExamples, of.workers * of.towers * of.batch));
  });
}

TEST_CASE("an example has its own values wherever it goes") {
  ForEach([](const Dataset& dataset, const Division& of, const auto& options) {
    const auto pipeline = Open(dataset, options(of.workers - 1));
    for (int64_t step = 0; step < 4; ++step) {
      const Examples examples = Read(*pipeline, step, of.batch);
      for (size_t i = 0; i < examples.numbers.size(); ++i) {
        CHECK(examples.features[i] == examples.numbers[i] * dataset.first_feature);
      }
    }
  });
}

TEST_CASE("the workers' parts of a step, side by side, are the step of one worker") {
  ForEach([](const Dataset& dataset, const Division& of, const auto& options) {
    if (of.is_off) return;
    PipelineOptions whole = options(0);
    whole.num_replicas = 1;
    whole.batch_per_tower = of.workers * of.towers * of.batch;
    whole.towers = 1;
    const auto alone = Open(dataset, whole);
    for (int64_t step = 0; step < 4; ++step) {
      std::vector<int64_t> together;
      for (uint32_t worker = 0; worker < of.workers; ++worker) {
        const Examples part = Read(*Open(dataset, options(worker)), step, of.batch);
        together.insert(together.end(), part.numbers.begin(), part.numbers.end());
      }
      CHECK(together == Read(*alone, step, whole.batch_per_tower).numbers);
    }
  });
}

}  // namespace
}  // namespace lockstep::worker
