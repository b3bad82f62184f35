#include "worker/evaluate/data_argument.h"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker/evaluate/fakes.h"

namespace lockstep::worker {
namespace {

using lockstep::test::TemporaryFolder;

// One record of two bytes.
const std::string kIdx("\0\0\x08\x02\0\0\0\x01\0\0\0\x02\x07\x07", 14);

// A model of two inputs whose job reads CSV with the label in column "y".
TrainedModel CsvModel() {
  TrainedModel model;
  model.graph = test::MakeGraph(
      "input_shape: 2 layers { name: 'd' dense { units: 3 } } "
      "layers { name: 'loss' softmax_cross_entropy {} }");
  model.job.mutable_data()->mutable_csv()->add_train(std::string("/train.csv"));
  model.job.mutable_data()->mutable_csv()->set_test("/test.csv");
  model.job.mutable_data()->mutable_csv()->set_label_column("y");
  model.job.mutable_data()->set_offset(3);
  model.job.mutable_data()->set_scale(0.5);
  return model;
}

TEST_CASE("IDX images come alone or with their labels and keep the job's scaling") {
  const TemporaryFolder folder;
  const std::string images = folder.Write("images", kIdx);
  const TrainedModel model = CsvModel();
  const auto alone = DataFromArgument(images, model);
  REQUIRE(alone.ok());
  CHECK_FALSE(alone->has_csv());
  CHECK(alone->idx().test_images() == images);
  CHECK(alone->idx().test_labels().empty());
  CHECK(alone->offset() == 3);
  CHECK(alone->scale() == 0.5);
  const auto both = DataFromArgument(images + ",labels,with comma", model);
  REQUIRE(both.ok());
  CHECK(both->idx().test_labels() == "labels,with comma");
}

TEST_CASE("a comma in the name of a file separates nothing") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.Path("a,b"));
  std::filesystem::create_directories(folder.Path("a"));
  const std::string csv = folder.Write("a,b/c,d.csv", "a,b\n1,2\n");
  CHECK(DataFromArgument(csv, CsvModel())->csv().test() == csv);
  const std::string images = folder.Write("a,b/images", kIdx);
  const auto pair = DataFromArgument(images + "," + csv, CsvModel());
  REQUIRE(pair.ok());
  CHECK(pair->idx().test_images() == images);
  CHECK(pair->idx().test_labels() == csv);
}

TEST_CASE("IDX files of another shape are refused with what to give instead") {
  const TemporaryFolder folder;
  const std::string three("\0\0\x08\x02\0\0\0\x01\0\0\0\x03\x07\x07\x07", 15);
  const absl::Status status = DataFromArgument(folder.Write("images", three), CsvModel()).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(status.message(),
                          "/images: examples have the shape [3], the model's input is [2]. Remedy: "
                          "give --data examples like those"));
}

TEST_CASE("a folder or a missing file is refused by the flag") {
  for (const char* path : {"/", "/no/such/file"}) {
    const absl::Status status = DataFromArgument(path, CsvModel()).status();
    CHECK(absl::StrContains(status.message(), "Remedy: give --data a file"));
    CHECK_FALSE(absl::StrContains(status.message(), "job file"));
  }
}

TEST_CASE("a model that has the characters of its text takes other texts of these") {
  TrainedModel model = CsvModel();
  model.job.mutable_data()->clear_csv();
  model.job.mutable_data()->mutable_text()->set_path("/a.txt");
  model.job.mutable_data()->mutable_text()->set_characters("abc");
  const auto data = DataFromArgument("/x/../b,c.txt", model);
  REQUIRE(data.ok());
  CHECK(data->text().path() == "/b,c.txt");
  CHECK(data->text().characters() == "abc");
}

TEST_CASE("a model that lacks the characters of its text takes that text alone") {
  TrainedModel model = CsvModel();
  model.job.mutable_data()->clear_csv();
  model.job.mutable_data()->mutable_text()->set_path("/a.txt");
  CHECK(DataFromArgument("/a.txt", model)->text().path() == "/a.txt");
  const absl::Status status = DataFromArgument("/b.txt", model).status();
  CHECK(
      absl::StrContains(status.message(), "the model was trained on, /a.txt, got /b.txt. Remedy"));
}

TEST_CASE("the text of a model is recognised however its path is written") {
  const TemporaryFolder folder;
  TrainedModel model = CsvModel();
  model.job.mutable_data()->clear_csv();
  model.job.mutable_data()->mutable_text()->set_path(folder.Path("a.txt"));
  for (const char* path : {"./a.txt", "x/../a.txt", "x//..//a.txt"}) {
    const auto data = DataFromArgument(folder.Path(path), model);
    INFO(data.status());
    REQUIRE(data.ok());
    CHECK(data->text().path() == folder.Path("a.txt"));
  }
}

TEST_CASE("IDX is recognised through gzip") {
  const TemporaryFolder folder;
  const std::string path = folder.Path("images.gz");
  const gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(gzwrite(file, kIdx.data(), kIdx.size()) == static_cast<int>(kIdx.size()));
  REQUIRE(gzclose(file) == Z_OK);
  CHECK(DataFromArgument(path, CsvModel())->has_idx());
}

TEST_CASE("a CSV file has the job's label column, or none when the inputs are all there is") {
  const TemporaryFolder folder;
  const TrainedModel model = CsvModel();
  const std::string with = folder.Write("with.csv", "a,y,b\n1,0,2\n");
  const auto labelled = DataFromArgument(with, model);
  REQUIRE(labelled.ok());
  CHECK(labelled->csv().test() == with);
  CHECK(labelled->csv().train().empty());
  CHECK(labelled->csv().label_column() == "y");
  const auto bare = DataFromArgument(folder.Write("bare.csv", "a,b\n1,2\n"), model);
  REQUIRE(bare.ok());
  CHECK(bare->csv().label_column().empty());
  CHECK(bare->offset() == 3);
}

TEST_CASE("the columns of a CSV file are those of the training, in their order") {
  const TemporaryFolder folder;
  TrainedModel model = CsvModel();
  CsvFile* const csv = model.job.mutable_data()->mutable_csv();
  csv->add_columns("a");
  csv->add_columns("b");
  const auto status_of = [&](const std::string& text) {
    return DataFromArgument(folder.Write("f.csv", text), model).status();
  };
  CHECK(status_of("a,b\n1,2\n").ok());
  CHECK(status_of("a,y,b\n1,0,2\n").ok());
  for (const char* text : {"b,a\n1,2\n", "y,b,a\n0,1,2\n"}) {
    const absl::Status status = status_of(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(
        status.message(),
        "f.csv: expected the columns of the files that the model was trained on, got \"b\" in the "
        "place of \"a\". Remedy: give the file the columns that the model was trained on"));
  }
  csv->set_label_column("0");
  CHECK(status_of("label,a,b\n0,1,2\n").ok());
  CHECK_FALSE(status_of("label,a,c\n0,1,2\n").ok());
}

TEST_CASE("a CSV file without a header is read as the job's was") {
  const TemporaryFolder folder;
  TrainedModel model = CsvModel();
  model.job.mutable_data()->mutable_csv()->set_no_header(true);
  model.job.mutable_data()->mutable_csv()->set_label_column("0");
  CHECK(DataFromArgument(folder.Write("with.csv", "0,1,2\n"), model)->csv().label_column() == "0");
  CHECK(DataFromArgument(folder.Write("bare.csv", "1,2\n"), model)->csv().label_column().empty());
}

TEST_CASE("files that cannot be what is asked for are refused") {
  const TemporaryFolder folder;
  TrainedModel model = CsvModel();
  CHECK(DataFromArgument(folder.Path("no"), model).status().code() == absl::StatusCode::kNotFound);
  const std::string csv = folder.Write("a.csv", "a,b\n1,2\n");
  const absl::Status labels = DataFromArgument(csv + ",labels", model).status();
  CHECK(labels.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(labels.message(), "Remedy"));
  CHECK_FALSE(DataFromArgument(folder.Write("empty", ""), model).ok());
  model.job.mutable_data()->clear_csv();
  const absl::Status columns =
      DataFromArgument(folder.Write("wide.csv", "a,b,c\n1,2,3\n"), model).status();
  CHECK(columns.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(columns.message(), "3 columns, the model takes 2 numbers. Remedy"));
}

TEST_CASE("a CSV file with columns that the model does not take says which it takes") {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& text) {
    const std::string file = folder.Write("f.csv", text);
    const absl::Status status = DataFromArgument(file, CsvModel()).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    return std::string(status.message().substr(file.size()));
  };
  CHECK(error_of("a,b,c,y\n1,2,3,0\n") ==
        ": 4 columns, one of them the label, the model takes 2 numbers, or 3 columns with the "
        "label in column \"y\". Remedy: give the file the columns that the model was trained on");
  CHECK(absl::StrContains(error_of("a\n1\n"), ": 1 column, the model takes 2 numbers"));
  // As many columns as inputs, but the label is one of them.
  CHECK(absl::StrContains(error_of("a,y\n1,0\n"), ": 2 columns, one of them the label"));
}

TEST_CASE("a CSV file that cannot be read as the training's is refused without fields of a job") {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& text, bool no_header) {
    TrainedModel model = CsvModel();
    model.job.mutable_data()->mutable_csv()->set_no_header(no_header);
    const absl::Status status = DataFromArgument(folder.Write("f.csv", text), model).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  CHECK(absl::StrContains(error_of("1.5,2\n1,2\n", false),
                          "the header consists of numbers; there are 2 columns: \"1.5\", \"2\". "
                          "Remedy: separate the columns by commas, below a line with their names, "
                          "as in the files that the model was trained on"));
  CHECK(
      absl::StrContains(error_of("1;2\n", true), "Remedy: separate the columns by commas, as in"));
  // As many columns as with the label, which is none of them.
  CHECK(absl::StrContains(error_of("a,b,c\n1,2,3\n", false),
                          ": 3 columns, the model takes 2 numbers, or 3 columns with the label in "
                          "column \"y\". Remedy: give the file the columns"));
}

// An LSTM over the CSV columns of CsvModel, with states that the job has files for.
TrainedModel RecurrentModel() {
  TrainedModel model = CsvModel();
  model.graph = test::MakeGraph(
      "input_shape: [4, 2] state_inputs { name: 'h' units: 3 } state_inputs { name: 'c' units: 3 } "
      "layers { name: 'l' inputs: ['input', 'h', 'c'] lstm { units: 3 } } "
      "layers { name: 'loss' softmax_cross_entropy {} }");
  for (const char* name : {"c", "h"}) {
    StateInputData* const state = model.job.mutable_data()->add_state_inputs();
    state->set_name(name);
    state->add_train(absl::StrCat("/train-", name));
    state->set_test(absl::StrCat("/test-", name));
  }
  return model;
}

TEST_CASE("rows of states take the place of the job's, in the order of the model") {
  const TemporaryFolder folder;
  const TrainedModel model = RecurrentModel();
  // Steps of sequences: two columns, not eight.
  auto data = DataFromArgument(folder.Write("steps.csv", "a,b\n1,2\n"), model);
  REQUIRE(data.ok());
  REQUIRE(SetStateFiles("/h.csv,/c.idx", model, &*data).ok());
  CHECK(data->state_inputs(0).test() == "/c.idx");
  CHECK(data->state_inputs(1).test() == "/h.csv");
  CHECK(data->state_inputs(1).train().empty());
  std::filesystem::create_directory(folder.Path("x,y"));
  const std::string h = folder.Write("x,y/h.csv", "1,2,3\n");
  const std::string c = folder.Write("x,y/c.csv", "1,2,3\n");
  REQUIRE(SetStateFiles(h + "," + c, model, &*data).ok());
  CHECK(data->state_inputs(0).test() == c);
  CHECK(data->state_inputs(1).test() == h);
  for (const char* files : {"", "/h.csv", "/a,/b,/c"}) {
    const absl::Status status = SetStateFiles(files, model, &*data);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(),
                            "--states: expected 2 files, of rows for the model's state inputs: "
                            "\"h\", \"c\", got"));
  }
  const absl::Status none = SetStateFiles("/h.csv", CsvModel(), &*data);
  CHECK(absl::StrContains(none.message(), "--states: expected 0 files"));
}

TEST_CASE("steps of one column and their label are not taken for sequences of two steps") {
  const TemporaryFolder folder;
  TrainedModel model = RecurrentModel();
  model.graph = test::MakeGraph(
      "input_shape: [2, 1] state_inputs { name: 'h' units: 3 } "
      "layers { name: 'g' inputs: ['input', 'h'] gru { units: 3 return_sequences: true } } "
      "layers { name: 'loss' softmax_cross_entropy {} }");
  const auto label_of = [&](const std::string& text) {
    const auto data = DataFromArgument(folder.Write("steps.csv", text), model);
    INFO(data.status());
    REQUIRE(data.ok());
    return data->csv().label_column();
  };
  CHECK(label_of("a,y\n1,0\n") == "y");
  CHECK(label_of("a\n1\n").empty());
  CHECK(label_of("a,b\n1,2\n").empty());
  model.job.mutable_data()->mutable_csv()->set_no_header(true);
  model.job.mutable_data()->mutable_csv()->set_label_column("1");
  CHECK(label_of("1,0\n") == "1");
}

TEST_CASE("a model whose sequences are rows says how many numbers a row has") {
  const TemporaryFolder folder;
  TrainedModel model = RecurrentModel();
  model.graph = test::MakeGraph(
      "input_shape: [4] state_inputs { name: 'h' units: 3 } "
      "layers { name: 'e' embedding { rows: 9 dim: 2 combiner: SEQUENCE } } "
      "layers { name: 'g' inputs: ['e', 'h'] gru { units: 3 } } "
      "layers { name: 'loss' softmax_cross_entropy {} }");
  CHECK(DataFromArgument(folder.Write("rows.csv", "a,b,c,d,y\n1,2,3,4,0\n"), model).ok());
  const absl::Status status =
      DataFromArgument(folder.Write("few.csv", "a,b\n1,2\n"), model).status();
  INFO(status);
  CHECK(absl::StrContains(status.message(), "2 columns, the model takes 4 numbers, or 5 columns"));
}

TEST_CASE("states that are zeros in the job are zeros without files, or rows of files") {
  const TrainedModel model = RecurrentModel();
  DataDef data = model.job.data();
  for (StateInputData& state : *data.mutable_state_inputs()) {
    state.Clear();
    state.set_zeros(true);
  }
  data.mutable_state_inputs(0)->set_name("c");
  data.mutable_state_inputs(1)->set_name("h");
  REQUIRE(SetStateFiles("", model, &data).ok());
  CHECK(data.state_inputs(0).zeros());
  REQUIRE(SetStateFiles("/h,/c", model, &data).ok());
  CHECK_FALSE(data.state_inputs(0).zeros());
  CHECK(data.state_inputs(0).test() == "/c");
}

}  // namespace
}  // namespace lockstep::worker
