#include "common/dataset/state_rows.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/dataset/example_table.h"
#include "common/dataset/measure.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using Catch::Contains;
using test::CountingIdx;
using test::Gzip;
using test::TemporaryFolder;

// Six examples [2] in a CSV file, and rows of state inputs "h" [3] and "c" [1] beside them.
class Files {
 public:
  Files() {
    data.mutable_csv()->add_train(folder.Write("train.csv", Csv(6)));
    data.mutable_csv()->set_test(folder.Write("test.csv", Csv(2)));
    data.mutable_csv()->set_label_column("y");
    AddState("h", "a,b,c\n1,2,3\n4,5,6\n7,8,9\n0,0,0\n1,1,1\n2,2,2\n", "a,b,c\n1,2,3\n4,5,6\n");
    AddState("c", Gzip(CountingIdx({6, 1})), CountingIdx({2, 1}));
    spec.input_shape = Shape({2});
    spec.num_outputs = 10;
    spec.state_inputs = {{"c", 1}, {"h", 3}};
  }

  static std::string Csv(int rows) {
    std::string text = "x,z,y\n";
    for (int i = 0; i < rows; ++i) absl::StrAppend(&text, i, ",", 10 * i, ",", i, "\n");
    return text;
  }

  void AddState(const std::string& name, const std::string& train, const std::string& test) {
    StateInputData* const state = data.add_state_inputs();
    state->set_name(name);
    state->add_train(folder.Write("train-" + name, train));
    state->set_test(folder.Write("test-" + name, test));
  }

  std::string Write(const std::string& name, const std::string& text) {
    return folder.Write(name, text);
  }

  std::string MeasureError() const {
    const absl::Status status = MeasureDataset(data, spec).status();
    CHECK_FALSE(status.ok());
    CHECK_THAT(std::string(status.message()), Contains("Remedy: "));
    return std::string(status.message());
  }

  TemporaryFolder folder;
  DataDef data;
  ExampleSpec spec;
};

std::vector<float> Values(const Tensor& tensor) {
  const auto all = tensor.as<float>();
  return {all.begin(), all.end()};
}

TEST_CASE("each example has a row of each state input, in the order of the model") {
  const Files files;
  const auto sizes = MeasureDataset(files.data, files.spec);
  INFO(sizes.status());
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 6);
  CHECK(sizes->test == 2);
  CHECK(sizes->rows_per_sequence == 1);
  const auto table = ReadExamples(files.data, Split::kTrain);
  REQUIRE(table.ok());
  CHECK(table->rows_per_sequence == 1);
  const auto states = MakeStates(files.data, table->states, files.spec);
  REQUIRE(states.ok());
  CHECK((*states)[0].shape() == Shape({6, 1}));
  CHECK(Values((*states)[0]) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK((*states)[1].shape() == Shape({6, 3}));
  CHECK(Values((*states)[1]) ==
        std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 1, 1, 1, 2, 2, 2});
  CHECK(Values((*MakeStates(files.data, ReadExamples(files.data, Split::kTest)->states,
                            files.spec))[1]) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("with fewer rows of states the rows of a file are the steps of sequences") {
  Files files;
  for (StateInputData& state : *files.data.mutable_state_inputs()) {
    const bool h = state.name() == "h";
    state.set_train(
        0, files.Write("few-" + state.name(), h ? "a,b,c\n1,2,3\n4,5,6\n" : CountingIdx({2, 1})));
  }
  files.data.mutable_csv()->set_test(files.Write("longer.csv", Files::Csv(6)));
  files.spec.input_shape = Shape({3, 2});
  files.spec.labels_per_example = 3;
  const auto sizes = MeasureDataset(files.data, files.spec);
  INFO(sizes.status());
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 2);
  CHECK(sizes->test == 2);
  CHECK(sizes->rows_per_sequence == 3);
  CHECK(sizes->example_shape == Shape({3, 2}));
  const auto table = ReadExamples(files.data, Split::kTrain);
  REQUIRE(table.ok());
  CHECK(table->rows_per_sequence == 3);
  CHECK(table->size() == 2);
  CHECK(table->features.shape == Shape({3, 2}));
  CHECK(table->labels.shape == Shape({3}));
  CHECK(table->Place(0) == "line 2");
  CHECK(table->Place(1) == "line 5");
  CHECK(table->Place(1, 2) == "line 7");
  float last[2];
  std::memcpy(last, table->features.bytes.data() + 10 * sizeof(float), sizeof(last));
  CHECK(last[0] == 5);
  CHECK(last[1] == 50);

  files.spec.input_shape = Shape({4, 2});
  CHECK_THAT(files.MeasureError(), Contains("[3,2], the model's input is [4,2]"));
}

TEST_CASE("with as many rows of states as lines each line is a sequence of one step") {
  Files files;
  files.spec.input_shape = Shape({1, 2});
  const auto sizes = MeasureDataset(files.data, files.spec);
  INFO(sizes.status());
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 6);
  CHECK(sizes->test == 2);
  CHECK(sizes->rows_per_sequence == 1);
  files.spec.input_shape = Shape({2, 2});
  CHECK_THAT(files.MeasureError(), Contains("[2], the model's input is [2,2]"));
}

TEST_CASE("lines of sequences with one prediction for each sequence are refused as what they are") {
  Files files;
  files.data.mutable_state_inputs()->DeleteSubrange(1, 1);
  files.data.mutable_state_inputs(0)->set_train(0, files.Write("h", "a,b,c\n1,2,3\n4,5,6\n"));
  files.data.mutable_state_inputs(0)->set_test(files.Write("h-test", "a,b,c\n1,2,3\n"));
  files.data.mutable_csv()->set_test(files.Write("test-steps.csv", Files::Csv(3)));
  files.spec.state_inputs = {{"h", 3}};
  files.spec.input_shape = Shape({3, 2});
  CHECK_THAT(files.MeasureError(),
             Contains("train.csv: each line, a time step of a sequence, has a label, 3 for each "
                      "sequence, and the model predicts 1. Remedy: set "
                      "return_sequences: true"));
  files.spec.classifier = false;
  files.spec.num_outputs = 1;
  CHECK_THAT(files.MeasureError(),
             Contains("has a target, 3 for each sequence, and the model predicts 1"));
  files.spec.num_outputs = 3;
  CHECK(MeasureDataset(files.data, files.spec).ok());
}

// Six rows [2] with labels of any shape, and two rows of a state input: sequences of three steps.
TEST_CASE("labels of sequences have a row for each step, whatever the shape of a row") {
  Files files;
  files.data.clear_csv();
  IdxFiles* const idx = files.data.mutable_idx();
  idx->add_train_images(files.Write("rows", CountingIdx({6, 2})));
  idx->add_train_labels(files.Write("labels", CountingIdx({6})));
  files.data.mutable_state_inputs()->DeleteSubrange(1, 1);
  files.data.mutable_state_inputs(0)->set_train(0, files.Write("h", "a,b,c\n1,2,3\n4,5,6\n"));
  files.spec.state_inputs = {{"h", 3}};
  files.spec.input_shape = Shape({3, 2});
  files.spec.labels_per_example = 3;
  CHECK(MeasureDataset(files.data, files.spec).ok());
  for (const uint32_t numbers : {1, 3}) {
    CAPTURE(numbers);
    files.spec.labels_per_example = numbers;
    idx->set_train_labels(0, files.Write("rank-2", CountingIdx({6, numbers})));
    CHECK(ReadExamples(files.data, Split::kTrain)->labels.shape == Shape({3, numbers}));
    CHECK_THAT(files.MeasureError(),
               Contains(absl::StrCat("for each example, got the shape [3,", numbers, "]")));
  }
}

TEST_CASE("several files of examples have a file of states each, which shards take along") {
  Files files;
  files.data.mutable_csv()->add_train(files.Write("more.csv", Files::Csv(2)));
  CHECK_THAT(files.MeasureError(), Contains("data.state_inputs: \"h\": train: expected 2 files"));
  files.data.mutable_state_inputs(0)->add_train(files.data.state_inputs(0).test());
  files.data.mutable_state_inputs(1)->add_train(files.data.state_inputs(1).test());
  CHECK(MeasureDataset(files.data, files.spec)->train == 8);
  const auto table = ReadExamples(files.data, Split::kTrain);
  REQUIRE(table.ok());
  const auto states = MakeStates(files.data, table->states, files.spec);
  CHECK(Values((*states)[0]) == std::vector<float>{0, 1, 2, 3, 4, 5, 0, 1});
  const auto second = ReadExamples(files.data, Split::kTrain, {1, 2});
  REQUIRE(second.ok());
  CHECK(second->states[0].count == 2);
  files.data.mutable_state_inputs(1)->set_train(1, files.Write("floats", "v\n1\n2\n"));
  const std::string error(ReadExamples(files.data, Split::kTrain).status().message());
  CHECK_THAT(error, Contains("more.csv: expected uint8 records of shape [1] as in ") &&
                        Contains("got float32 of shape [1]"));
  CHECK(files.MeasureError() == error);
}

TEST_CASE("zeros need no file, beside files or alone") {
  Files files;
  files.data.mutable_state_inputs(0)->clear_train();
  files.data.mutable_state_inputs(0)->clear_test();
  files.data.mutable_state_inputs(0)->set_zeros(true);
  CHECK(MeasureDataset(files.data, files.spec).ok());
  const auto states =
      MakeStates(files.data, ReadExamples(files.data, Split::kTrain)->states, files.spec);
  REQUIRE(states.ok());
  CHECK((*states)[1].num_elements() == 0);
  CHECK((*states)[0].num_elements() == 6);
  files.data.mutable_state_inputs(1)->clear_train();
  files.data.mutable_state_inputs(1)->set_zeros(true);
  CHECK(MeasureDataset(files.data, files.spec)->train == 6);
}

TEST_CASE("names that are not the model's are refused") {
  Files files;
  files.spec.state_inputs.push_back({"more", 2});
  CHECK_THAT(files.MeasureError(), Contains("expected \"more\", which the model takes"));
  files.spec.state_inputs.pop_back();
  files.spec.state_inputs.pop_back();
  CHECK_THAT(files.MeasureError(),
             Contains("\"h\": the model has no state input of this name. Remedy: remove it"));
  files.data.mutable_state_inputs(0)->set_name("c");
  CHECK_THAT(files.MeasureError(), Contains("expected 1, one for each state input of the model"));
}

TEST_CASE("rows that are too few, too many, of another width or missing are refused by name") {
  Files files;
  StateInputData* const h = files.data.mutable_state_inputs(0);
  h->set_train(0, files.Write("five", "a,b,c\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n"));
  CHECK_THAT(files.MeasureError(),
             Contains("train-c: expected 5 rows, as many as ") && Contains("/five has, got 6"));
  files.data.mutable_state_inputs(1)->set_zeros(true);
  CHECK_THAT(files.MeasureError(), Contains("/five: has 5 rows, expected one for each sequence") &&
                                       Contains("/train.csv, which has 6 rows"));
  CHECK(absl::IsDataLoss(ReadExamples(files.data, Split::kTrain).status()));
  h->set_train(0, files.Write("narrow", "a\n1\n2\n3\n4\n5\n6\n"));
  CHECK_THAT(files.MeasureError(),
             Contains("\"h\": expected rows of 3 numbers") && Contains("got the shape [1]"));
  h->set_train(0, files.Write("none", "a,b,c\n"));
  CHECK_THAT(files.MeasureError(), Contains("/none: "));
  h->set_train(0, files.folder.Path("nowhere"));
  CHECK(absl::IsNotFound(MeasureDataset(files.data, files.spec).status()));
  h->set_train(0, files.Write("thirteen", absl::StrCat("a,b,c\n", std::string(13, '\n'))));
  CHECK_FALSE(files.MeasureError().empty());
}

TEST_CASE("test examples need states of their own") {
  Files files;
  files.data.mutable_state_inputs(0)->clear_test();
  CHECK_THAT(files.MeasureError(), Contains("data.state_inputs: \"h\": test: not set"));
}

}  // namespace
}  // namespace lockstep
