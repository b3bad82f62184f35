#include "worker/data/row_indices.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep::worker {
namespace {

using lockstep::test::Idx;
using lockstep::test::TemporaryFolder;

// Two examples of three columns.
template <typename T>
ExampleTable TableOf(ElementType type, const std::vector<T>& features) {
  ExampleTable table;
  table.files = {{.features = "features"}};
  table.features.type = type;
  table.features.shape = Shape({3});
  table.features.count = static_cast<int64_t>(features.size()) / 3;
  table.features.bytes.resize(features.size() * sizeof(T));
  std::memcpy(table.features.bytes.data(), features.data(), table.features.bytes.size());
  return table;
}

ExampleSpec SpecOf(std::vector<ExampleSpec::RowIndices> row_indices) {
  return {Shape({3}), true, 2, std::move(row_indices)};
}

TEST_CASE(
    "Row indices from the first to the last row are sound, and other columns may be anything") {
  const ExampleTable table =
      TableOf<float>(ElementType::kFloat32, {0.5f, 0, 16777215, -7, -0.0f, 3});
  CHECK(CheckRowIndices(table, SpecOf({{1, 2, 16777216}})).ok());
  CHECK(CheckRowIndices(table, SpecOf({{1, 1, 1}})).ok());
  CHECK(CheckRowIndices(table, SpecOf({})).ok());
  CHECK(CheckRowIndices(TableOf<uint8_t>(ElementType::kUInt8, {0, 255, 7}), SpecOf({{0, 3, 256}}))
            .ok());
}

TEST_CASE("What is no row index is refused with file, place, column, value and what is allowed") {
  ExampleTable with_names = TableOf<float>(ElementType::kFloat32, {0, 1, 2, 0, 1, 2.5f});
  with_names.lines = {2, 5};
  with_names.columns = {"age", "user", "it\"em"};
  struct Case {
    ExampleTable table;
    std::vector<ExampleSpec::RowIndices> row_indices;
    const char* message;
  };
  const std::vector<float> floats = {0, 1, 2, 3, -1, 16777216};
  const Case cases[] = {
      {with_names,
       {{1, 2, 9}},
       "features: line 5: column \"it\\\"em\": 2.5, expected a row index, a whole number from 0 "
       "to 8"},
      {TableOf(ElementType::kFloat32, floats), {{0, 2, 9}}, "features: record 1: element 1: -1,"},
      {TableOf(ElementType::kFloat32, floats), {{0, 1, 3}}, "record 1: element 0: 3, expected"},
      {TableOf(ElementType::kFloat32, floats), {{0, 1, 3}}, "from 0 to 2. Remedy: correct it"},
      {TableOf(ElementType::kFloat32, floats), {{2, 1, 16777216}}, "element 2: 16777216, expected"},
      // The stricter of two tables that are looked up by one column.
      {TableOf(ElementType::kFloat32, floats), {{0, 1, 4}, {0, 1, 2}}, "from 0 to 1."},
      {TableOf<int8_t>(ElementType::kInt8, {0, 0, -128}), {{0, 3, 9}}, "element 2: -128,"},
      // Beyond what float32 counts: it is judged as the model would see it.
      {TableOf<int32_t>(ElementType::kInt32, {0, 0, 16777217}), {{0, 3, 16777216}}, "16777217,"},
      {TableOf<double>(ElementType::kFloat64, {0, 0.25, 0}), {{0, 3, 9}}, "element 1: 0.25,"},
  };
  for (const Case& c : cases) {
    const absl::Status status = CheckRowIndices(c.table, SpecOf(c.row_indices));
    INFO(status.ToString());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(c.message));
  }
}

TEST_CASE("Training and test files are both checked, and offset and scale refused") {
  const TemporaryFolder folder;
  const std::string good = "user,label,x\n4,0,7.5\n0,1,-3\n";
  const std::string bad = "user,label,x\n4,0,7.5\n5,1,-3\n";
  const ExampleSpec spec{Shape({2}), true, 2, {{0, 1, 5}}};
  PipelineOptions options;
  options.batch_per_tower = 1;
  DataDef data;
  data.mutable_csv()->set_label_column("label");
  data.mutable_csv()->add_train(folder.Write("good.csv", good));
  data.mutable_csv()->set_test(folder.Write("bad.csv", bad));
  CHECK(Pipeline::Open(data, spec, options).ok());
  const char* const kError = "bad.csv: line 3: column \"user\": 5, expected a row index";
  CHECK_THAT(std::string(TestSet::Open(data, spec).status().message()), Catch::Contains(kError));
  std::swap(*data.mutable_csv()->mutable_train(0), *data.mutable_csv()->mutable_test());
  CHECK(TestSet::Open(data, spec).ok());
  CHECK_THAT(std::string(Pipeline::Open(data, spec, options).status().message()),
             Catch::Contains(kError));

  data.set_scale(1);
  CHECK(TestSet::Open(data, spec).ok());
  data.set_scale(0.5f);
  const absl::Status scaled = TestSet::Open(data, spec).status();
  CHECK(absl::IsInvalidArgument(scaled));
  CHECK_THAT(std::string(scaled.message()), Catch::Contains("data.scale: expected 1"));
  data.set_offset(2);
  CHECK_THAT(std::string(TestSet::Open(data, spec).status().message()),
             Catch::Contains("data.offset: expected 0"));
}

TEST_CASE("IDX files may hold row indices too") {
  const TemporaryFolder folder;
  DataDef data;
  data.mutable_idx()->set_test_images(
      folder.Write("x", Idx(0x08, {2, 3}, std::string("\x00\x07\x02\x01\x08\x02", 6))));
  CHECK(TestSet::Open(data, SpecOf({{0, 3, 9}})).ok());
  CHECK_THAT(std::string(TestSet::Open(data, SpecOf({{0, 3, 8}})).status().message()),
             Catch::Contains("record 1: element 1: 8, expected"));
}

}  // namespace
}  // namespace lockstep::worker
