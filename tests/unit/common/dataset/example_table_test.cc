#include "common/dataset/example_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "common/dataset/fit.h"
#include "common/dataset/measure.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using test::CountingIdx;
using test::Gzip;
using test::Idx;
using test::TemporaryFolder;

class Files {
 public:
  Files() {
    auto* idx = data.mutable_idx();
    idx->add_train_images(folder.Write("train-images", CountingIdx({6, 2, 2})));
    idx->add_train_labels(folder.Write("train-labels", CountingIdx({6})));
    idx->set_test_images(folder.Write("test-images", Gzip(CountingIdx({3, 2, 2}))));
    idx->set_test_labels(folder.Write("test-labels", Gzip(CountingIdx({3}))));
  }

  DataDef Csv(const std::string& train, const std::string& test) const {
    DataDef csv;
    csv.mutable_csv()->add_train(folder.Write("train.csv", train));
    csv.mutable_csv()->set_test(folder.Write("test.csv", test));
    csv.mutable_csv()->set_label_column("label");
    return csv;
  }

  TemporaryFolder folder;
  DataDef data;
};

// A model for the training files of the job: a classifier of 256 classes.
ExampleSpec SpecFor(const DataDef& data) {
  if (data.csv().train().empty()) return {Shape({2, 2}), true, 256};
  std::ifstream file(data.csv().train(0));
  std::string header;
  std::getline(file, header);
  return {Shape({std::max<int64_t>(1, std::ranges::count(header, ','))}), true, 256};
}

absl::StatusOr<DatasetSizes> Measure(const DataDef& data) {
  return MeasureDataset(data, SpecFor(data));
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST_CASE("Measuring and reading agree on the number of examples") {
  Files files;
  const auto sizes = Measure(files.data);
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 6);
  CHECK(sizes->test == 3);
  CHECK(sizes->example_shape == Shape({2, 2}));
  const auto train = ReadExamples(files.data, Split::kTrain);
  REQUIRE(train.ok());
  CHECK(train->size() == 6);
  CHECK(train->has_labels());
  CHECK(train->Place(4) == "record 4");
  CHECK(train->ColumnName(3) == "element 3");
  CHECK(ReadExamples(files.data, Split::kTest)->size() == 3);
}

TEST_CASE("CSV examples are measured and remember their lines") {
  Files files;
  const DataDef data = files.Csv("x,label,y\n1,0,2\n\n3,1,4\n", "x,label,y\n5,1,6\n");
  const auto sizes = Measure(data);
  INFO(sizes.status().ToString());
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 2);
  CHECK(sizes->test == 1);
  CHECK(sizes->example_shape == Shape({2}));
  const auto train = ReadExamples(data, Split::kTrain);
  REQUIRE(train.ok());
  CHECK(train->size() == 2);
  CHECK(train->Place(1) == "line 4");
  CHECK(train->ColumnName(1) == "column \"y\"");
  CHECK(train->features.shape == Shape({2}));
  CHECK(train->features.bytes.size() == 16);
  CHECK(train->labels.bytes.size() == 16);
}

TEST_CASE("Test data are optional, and so are labels to predict with") {
  Files files;
  files.data.mutable_idx()->clear_test_labels();
  const auto unlabelled = ReadExamples(files.data, Split::kTest);
  REQUIRE(unlabelled.ok());
  CHECK_FALSE(unlabelled->has_labels());
  files.data.mutable_idx()->clear_test_images();
  const auto sizes = Measure(files.data);
  REQUIRE(sizes.ok());
  CHECK(sizes->test == 0);
  CHECK_THAT(Message(ReadExamples(files.data, Split::kTest).status()),
             Catch::StartsWith("data.idx.test_images: not set"));

  DataDef csv = files.Csv("x,label\n1,2\n", "x,y\n1,2\n");
  csv.mutable_csv()->clear_label_column();
  const auto features_only = ReadExamples(csv, Split::kTest);
  REQUIRE(features_only.ok());
  CHECK_FALSE(features_only->has_labels());
  CHECK(features_only->features.shape == Shape({2}));
}

TEST_CASE("What a job names wrongly is refused by field or file") {
  Files files;
  struct Case {
    const char* name;
    std::function<void(DataDef&)> change;
    absl::StatusCode code;
    std::string message;
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto lost = absl::StatusCode::kDataLoss;
  const auto not_found = absl::StatusCode::kNotFound;
  const auto write = [&](const std::string& bytes) { return files.folder.Write("other", bytes); };
  const Case cases[] = {
      {"nothing", [](DataDef& d) { d.clear_idx(); }, invalid, "data: expected exactly one"},
      {"both", [](DataDef& d) { d.mutable_csv(); }, invalid, "got several"},
      {"no images", [](DataDef& d) { d.mutable_idx()->clear_train_images(); }, invalid,
       "data.idx.train_images: not set"},
      {"no labels", [](DataDef& d) { d.mutable_idx()->clear_train_labels(); }, invalid,
       "data.idx.train_labels: not set"},
      {"test labels without images", [](DataDef& d) { d.mutable_idx()->clear_test_images(); },
       invalid, "data.idx.test_images: not set"},
      {"test images without labels", [](DataDef& d) { d.mutable_idx()->clear_test_labels(); },
       invalid, "data.idx.test_labels: not set"},
      {"missing images",
       [](DataDef& d) { d.mutable_idx()->set_train_images(0, "/nowhere/images"); }, not_found,
       "/nowhere/images: "},
      {"missing test labels",
       [](DataDef& d) { d.mutable_idx()->set_test_labels("/nowhere/labels"); }, not_found,
       "/nowhere/labels: "},
      {"fewer labels",
       [&](DataDef& d) { d.mutable_idx()->set_train_labels(0, write(CountingIdx({5}))); }, lost,
       "expected 6 labels, one for each record of " + files.data.idx().train_images(0) + ", got 5"},
      {"more labels",
       [&](DataDef& d) { d.mutable_idx()->set_train_labels(0, write(Gzip(CountingIdx({7})))); },
       lost, "got 7"},
      {"other test shape",
       [&](DataDef& d) {
         d.mutable_idx()->set_test_images(write(CountingIdx({3, 4})));
       },
       invalid, "shape [2,2] as in " + files.data.idx().train_images(0) + ", got [4]"},
      {"no training file",
       [&](DataDef& d) {
         d = files.Csv("", "");
         d.mutable_csv()->clear_train();
       },
       invalid, "data.csv.train: not set"},
      {"no label column",
       [&](DataDef& d) {
         d = files.Csv("x,label\n1,2\n", "x,label\n1,2\n");
         d.mutable_csv()->clear_label_column();
       },
       invalid, "data.csv.label_column: not set"},
      {"a header alone", [&](DataDef& d) { d = files.Csv("x,label\n", "x,label\n1,2\n"); }, lost,
       "train.csv: line 2: expected at least one example"},
      {"an empty test file", [&](DataDef& d) { d = files.Csv("x,label\n1,2\n", ""); }, lost,
       "test.csv: line 1"},
      {"columns in another order",
       [&](DataDef& d) { d = files.Csv("x,y,label\n1,2,0\n", "y,x,label\n1,2,0\n"); }, invalid,
       "got \"y\" in the place of \"x\""},
      {"another number of columns",
       [&](DataDef& d) { d = files.Csv("x,y,label\n1,2,0\n", "x,label\n1,2\n"); }, invalid,
       "shape [2]"},
      {"a bad row in the test file",
       [&](DataDef& d) { d = files.Csv("x,label\n1,2\n", "x,label\n1,2\n1\n"); }, lost,
       "test.csv: line 3"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    DataDef data = files.data;
    c.change(data);
    const auto status = Measure(data).status();
    INFO(status.ToString());
    CHECK(status.code() == c.code);
    CHECK_THAT(Message(status), Catch::Contains(c.message) && Catch::Contains("Remedy: "));
  }
}

TEST_CASE("Several training files are read as one, and places are in their files") {
  Files files;
  DataDef data = files.Csv("x,label\n1,0\n", "x,label\n9,0\n");
  data.mutable_csv()->add_train(files.folder.Write("b.csv", "x,label\n\n2,1\n3,2\n"));
  data.mutable_csv()->add_train(files.folder.Write("c.csv", "x,label\n4,3\n"));
  const auto sizes = Measure(data);
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 4);
  CHECK(sizes->train_files == std::vector<int64_t>{1, 2, 1});
  const auto table = ReadExamples(data, Split::kTrain);
  REQUIRE(table.ok());
  CHECK(table->size() == 4);
  CHECK(table->Place(1) == "line 3");
  CHECK(table->FileOf(2).features == data.csv().train(1));
  CHECK(table->FileOf(3).features == data.csv().train(2));
  CHECK(ReadExamples(data, Split::kTrain, {.index = 0, .count = 2})->size() == 2);
  CHECK(ReadExamples(data, Split::kTrain, {.index = 1, .count = 2})->size() == 2);
  CHECK(ReadExamples(data, Split::kTest, {.index = 1, .count = 2})->size() == 1);

  files.data.mutable_idx()->add_train_images(files.folder.Write("i2", CountingIdx({2, 2, 2})));
  files.data.mutable_idx()->add_train_labels(files.folder.Write("l2", CountingIdx({2})));
  const auto images = ReadExamples(files.data, Split::kTrain);
  REQUIRE(images.ok());
  CHECK(images->size() == 8);
  CHECK(images->Place(5) == "record 5");
  CHECK(images->Place(7) == "record 1");
  CHECK(images->features.bytes.size() == 32);
  CHECK(images->features.bytes[24] == std::byte{0});
  CHECK(Measure(files.data)->train == 8);
}

TEST_CASE("Training files that are not of one data set are refused") {
  Files files;
  const auto check = [](const DataDef& data, const std::string& text) {
    for (const absl::Status& status :
         {Measure(data).status(), ReadExamples(data, Split::kTrain).status()}) {
      INFO(status.ToString());
      CHECK(absl::IsInvalidArgument(status));
      CHECK_THAT(Message(status), Catch::Contains(text) && Catch::Contains("Remedy: "));
    }
  };
  DataDef csv = files.Csv("x,label\n1,0\n", "x,label\n9,0\n");
  csv.mutable_csv()->add_train(files.folder.Write("b.csv", "z,label\n2,1\n"));
  check(csv, "got \"z\" in the place of \"x\"");
  csv.mutable_csv()->set_train(1, files.folder.Write("c.csv", "x,y,label\n2,1,1\n"));
  check(csv, csv.csv().train(0));
  DataDef idx = files.data;
  idx.mutable_idx()->add_train_images(files.folder.Write("i2", CountingIdx({2, 3, 2})));
  check(idx, "data.idx.train_labels: expected 2 files");
  idx.mutable_idx()->add_train_labels(files.folder.Write("l2", CountingIdx({2})));
  check(idx, "shape [2,2] as in " + idx.idx().train_images(0) + ", got ");
  const std::string floats = Idx(0x0D, {2, 2, 2}, std::string(32, '\0'));
  idx.mutable_idx()->set_train_images(1, files.folder.Write("i3", floats));
  check(idx, "i3: expected uint8 records of shape [2,2] as in " + idx.idx().train_images(0) +
                 ", got float32 of shape [2,2]");
  idx.mutable_idx()->set_train_images(1, files.folder.Write("i4", CountingIdx({2, 2, 2})));
  CHECK(Measure(idx).ok());
  idx.mutable_idx()->set_train_labels(1, files.folder.Write("l3", Idx(0x09, {2}, "12")));
  check(idx, "l3: expected uint8 records of shape [] as in " + idx.idx().train_labels(0) +
                 ", got int8 of shape []");
  idx.mutable_idx()->set_train_labels(1, files.folder.Write("l4", CountingIdx({2, 1})));
  check(idx, "got uint8 of shape [1]");
  CHECK_THAT(Message(ReadExamples(files.data, Split::kTrain, {.index = 0, .count = 2}).status()),
             Catch::Contains("expected at least 2 training files, one for each worker, got 1"));
}

TEST_CASE("Training files of different workers may differ in type") {
  Files files;
  DataDef data = files.data;
  for (const int type : {0x09, 0x08, 0x09}) {
    const std::string name = std::to_string(data.idx().train_images_size());
    const std::string images = Idx(type, {2, 2, 2}, std::string(8, '\1'));
    data.mutable_idx()->add_train_images(files.folder.Write("images" + name, images));
    data.mutable_idx()->add_train_labels(files.folder.Write("labels" + name, CountingIdx({2})));
  }
  CHECK_FALSE(MeasureDataset(data, SpecFor(data), 2).ok());
  data.set_auto_shard(DataDef::FILE);
  CHECK(MeasureDataset(data, SpecFor(data), 2).ok());
  for (const int64_t worker : {0, 1}) {
    CHECK(ReadExamples(data, Split::kTrain, {.index = worker, .count = 2}).ok());
  }
  const absl::Status status = MeasureDataset(data, SpecFor(data), 3).status();
  CHECK_THAT(Message(status), Catch::Contains("images3: expected uint8 records of shape [2,2]"));
}

TEST_CASE("Reading finds what measuring cannot") {
  Files files;
  const std::string bytes = CountingIdx({6, 2, 2});
  files.data.mutable_idx()->set_train_images(
      0, files.folder.Write("cut", Gzip(bytes.substr(0, bytes.size() - 1))));
  CHECK(Measure(files.data).ok());
  CHECK(ReadExamples(files.data, Split::kTrain).status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("Labels and row indices that do not fit the model are found while measuring") {
  Files files;
  const auto error_of = [](const DataDef& data, const ExampleSpec& spec) {
    const absl::Status status = MeasureDataset(data, spec).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(Message(status), Catch::Contains("Remedy: "));
    return Message(status);
  };
  CHECK_THAT(error_of(files.data, {Shape({2, 2}), true, 5}),
             Catch::Contains("train-labels: record 5: label 5, expected a whole number from 0 to "
                             "4"));
  CHECK_THAT(
      error_of(files.data, {Shape({2, 2}), false, 3}),
      Catch::Contains("train-labels: expected 3 targets for each example, got the shape []"));
  const DataDef csv = files.Csv("x,label,y\n1,0,2\n3,1.5,9\n", "x,label,y\n5,1,6\n");
  CHECK_THAT(error_of(csv, {Shape({2}), true, 2}),
             Catch::Contains("train.csv: line 3: label 1.5, expected"));
  ExampleSpec probabilities{Shape({2}), false, 1};
  probabilities.predicts_probabilities = true;
  CHECK_THAT(error_of(csv, probabilities),
             Catch::Contains("train.csv: line 3: label 1.5, expected a number from 0 to 1"));
  probabilities.input_shape = Shape({2, 2});
  CHECK_THAT(error_of(files.data, probabilities),
             Catch::Contains("train-labels: record 2: label 2, expected a number from 0 to 1"));
  CHECK_THAT(
      error_of(csv, {Shape({2}), false, 26}),
      Catch::Contains("train.csv: a CSV file has one target, the label_column, and the model "
                      "has 26 outputs. Remedy: give the layer before l2_loss one output"));
  CHECK_THAT(error_of(csv, {Shape({2}), false, 1, {{1, 1, 9}}}),
             Catch::Contains("train.csv: line 3: column \"y\": 9, expected a row index"));
  CHECK(MeasureDataset(csv, {Shape({2}), false, 1, {{1, 1, 10}}}).ok());
}

TEST_CASE("Examples fit an input of their shape, one of a single channel, or of a single step") {
  CHECK(CheckExamplesFit("f", Shape({28, 28}), Shape({28, 28})).ok());
  CHECK(CheckExamplesFit("f", Shape({28, 28}), Shape({28, 28, 1})).ok());
  CHECK(CheckExamplesFit("f", Shape({28, 28, 3}), Shape({28, 28, 3})).ok());
  CHECK(CheckExamplesFit("f", Shape(), Shape({1})).ok());
  CHECK(CheckExamplesFit("f", Shape({28}), Shape({1, 28})).ok());
  const std::pair<Shape, Shape> wrong[] = {
      {Shape({28, 28}), Shape({28, 28, 3})},
      {Shape({28, 28, 1}), Shape({28, 28})},
      {Shape({28, 28}), Shape({784})},
      {Shape({28, 28}), Shape({28, 27, 1})},
      {Shape({28, 28}), Shape({1, 28, 28})},
      {Shape({28}), Shape({28, 1, 1})},
      {Shape({28}), Shape({1, 27})},
      {Shape({28}), Shape({1, 28, 1})},
      {Shape({1}), Shape()},
  };
  for (const auto& [examples, input] : wrong) {
    const auto status = CheckExamplesFit("file", examples, input);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(Message(status), Catch::StartsWith("file: ") && Catch::Contains("Remedy: ") &&
                                    Catch::Contains(examples.ToString()) &&
                                    Catch::Contains(input.ToString()));
  }
}

}  // namespace
}  // namespace lockstep
