#include "worker/data/labels.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

namespace lockstep::worker {
namespace {

template <typename T>
ExampleTable Table(ElementType type, const std::vector<T>& labels, Shape shape = Shape()) {
  ExampleTable table;
  table.files = {{.labels = "labels"}};
  table.labels.type = type;
  table.labels.shape = shape;
  table.labels.count = static_cast<int64_t>(labels.size()) / shape.num_elements();
  table.features.count = table.labels.count;
  table.labels.bytes.resize(labels.size() * sizeof(T));
  std::memcpy(table.labels.bytes.data(), labels.data(), table.labels.bytes.size());
  return table;
}

ExampleSpec Classifier(int64_t classes) { return {Shape({1}), true, classes}; }
ExampleSpec Regression(int64_t outputs) { return {Shape({1}), false, outputs}; }
ExampleSpec Probabilities(int64_t outputs) {
  ExampleSpec spec = Regression(outputs);
  spec.predicts_probabilities = true;
  return spec;
}

TEST_CASE("Labels of any element type become int32 for a classifier") {
  const auto bytes = MakeLabels(Table<uint8_t>(ElementType::kUInt8, {0, 9, 3}), Classifier(10), 0);
  REQUIRE(bytes.ok());
  CHECK(bytes->shape() == Shape({3}));
  CHECK(bytes->as<int32_t>()[1] == 9);
  const auto doubles = MakeLabels(Table<double>(ElementType::kFloat64, {2, 0}), Classifier(3), 3);
  REQUIRE(doubles.ok());
  CHECK(doubles->as<int32_t>()[0] == 2);
}

TEST_CASE("A classifier of sequences has a label for each time step") {
  ExampleSpec spec = Classifier(5);
  spec.labels_per_example = 3;
  const auto table = Table<uint8_t>(ElementType::kUInt8, {0, 4, 1, 2, 2, 3}, Shape({3}));
  const auto labels = MakeLabels(table, spec, 0);
  REQUIRE(labels.ok());
  CHECK(labels->shape() == Shape({2, 3}));
  CHECK(labels->as<int32_t>()[4] == 2);
  CHECK(std::string(MakeLabels(table, spec, 3).status().message()).find("record 0: label 4") !=
        std::string::npos);
  CHECK(MakeLabels(table, Classifier(5), 0).status().message().find("expected one label") !=
        std::string::npos);
  spec.labels_per_example = 2;
  CHECK(MakeLabels(table, spec, 0)
            .status()
            .message()
            .find("expected 2 labels for each example, got the shape [3]") != std::string::npos);
}

TEST_CASE("A wrong label of a time step is told with its own row of the file") {
  ExampleSpec spec = Classifier(5);
  spec.labels_per_example = 3;
  auto table = Table<uint8_t>(ElementType::kUInt8, {0, 4, 1, 2, 9, 3}, Shape({3}));
  table.rows_per_sequence = 3;
  const auto error = [&] { return std::string(MakeLabels(table, spec, 0).status().message()); };
  CHECK_THAT(error(), Catch::Contains("labels: record 4: label 9"));
  table.lines = {2, 3, 4, 6, 7, 8};
  CHECK_THAT(error(), Catch::Contains("labels: line 7: label 9"));
  // The second file of two.
  table.files.push_back({.labels = "more", .first = 1});
  table.lines.clear();
  CHECK_THAT(error(), Catch::Contains("more: record 1: label 9"));
}

TEST_CASE("A sequence of one time step has a label, in a shape of its own or not") {
  ExampleSpec spec = Classifier(5);
  for (const Shape& shape : {Shape(), Shape({1})}) {
    const auto labels = MakeLabels(Table<uint8_t>(ElementType::kUInt8, {4, 1}, shape), spec, 0);
    REQUIRE(labels.ok());
    CHECK(labels->as<int32_t>()[1] == 1);
  }
}

TEST_CASE("Targets of a regression become float32, one row per example") {
  const auto one = MakeLabels(Table<double>(ElementType::kFloat64, {0.5, -2}), Regression(1), 0);
  REQUIRE(one.ok());
  CHECK(one->shape() == Shape({2, 1}));
  CHECK(one->as<float>()[1] == -2);
  const auto two =
      MakeLabels(Table<float>(ElementType::kFloat32, {1, 2, 3, 4}, Shape({2})), Regression(2), 0);
  REQUIRE(two.ok());
  CHECK(two->shape() == Shape({2, 2}));
  CHECK(two->as<float>()[2] == 3);
  CHECK(MakeLabels(Table<float>(ElementType::kFloat32, {0, 1, 0.5f}), Probabilities(1), 0).ok());
}

TEST_CASE("Labels that do not fit are refused with file, place, label and what is allowed") {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExampleTable with_lines = Table<double>(ElementType::kFloat64, {1, 2.5});
  with_lines.lines = {2, 7};
  const auto bytes = [](std::vector<uint8_t> x) { return Table(ElementType::kUInt8, x); };
  struct Case {
    ExampleTable table;
    ExampleSpec spec;
    int64_t num_classes;
    absl::StatusCode code;
    const char* message;
  };
  const Case cases[] = {
      {bytes({0, 10}), Classifier(10), 0, invalid, "labels: record 1: label 10, expected a whole"},
      {bytes({0, 10}), Classifier(10), 0, invalid, "from 0 to 9"},
      {bytes({5}), Classifier(10), 5, invalid, "label 5, expected a whole number from 0 to 4"},
      {Table<int8_t>(ElementType::kInt8, {0, -1}), Classifier(10), 0, invalid, "label -1"},
      {Table<int32_t>(ElementType::kInt32, {1 << 30}), Classifier(10), 0, invalid,
       "label 1073741824, exp"},
      {with_lines, Classifier(10), 0, invalid, "labels: line 7: label 2.5"},
      {bytes({5}), Classifier(10), 11, invalid, "data.num_classes: expected at most 10"},
      {bytes({5}), Classifier(10), -1, invalid, "got -1"},
      {Table<uint8_t>(ElementType::kUInt8, {1, 2}, Shape({2})), Classifier(10), 0, invalid,
       "labels: expected one label for each example, got the shape [2]"},
      {Table<uint8_t>(ElementType::kUInt8, {1, 2}, Shape({2})), Regression(1), 0, invalid,
       "expected 1 target for each example"},
      {bytes({1, 2}), Regression(3), 0, invalid, "expected 3 targets for each example"},
      {Table<uint8_t>(ElementType::kUInt8, {1, 2, 3, 4}, Shape({2, 2})), Regression(4), 0, invalid,
       "got the shape [2,2]"},
      {Table<float>(ElementType::kFloat32, {0.25, 1, 0, 1.5}, Shape({2})), Probabilities(2), 0,
       invalid, "labels: record 1: label 1.5, expected a number from 0 to 1"},
      {Table<double>(ElementType::kFloat64, {-0.5}), Probabilities(1), 0, invalid, "label -0.5"},
      {Table<double>(ElementType::kFloat64, {NAN}), Probabilities(1), 0, invalid, "label nan"},
  };
  for (const Case& c : cases) {
    const auto status = MakeLabels(c.table, c.spec, c.num_classes).status();
    INFO(status.ToString());
    CHECK(status.code() == c.code);
    CHECK_THAT(std::string(status.message()), Catch::Contains(c.message));
    CHECK_THAT(std::string(status.message()), Catch::Contains("Remedy: "));
  }
}

}  // namespace
}  // namespace lockstep::worker
