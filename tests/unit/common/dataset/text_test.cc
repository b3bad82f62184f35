#include "common/dataset/text.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/dataset/measure.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;

TextFile Text(const std::string& path, int64_t length, float held_out) {
  TextFile text;
  text.set_path(path);
  text.set_length(length);
  text.set_held_out(held_out);
  return text;
}

std::vector<int> Numbers(const Records& records) {
  std::vector<int> numbers;
  for (const std::byte byte : records.bytes) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

TEST_CASE("A text is cut into sequences whose labels are the characters that follow") {
  const TemporaryFolder folder;
  // Numbers: ' ' 0, 'a' 1, 'b' 2, 'c' 3.
  const std::string characters = "abc cab abc";
  for (const std::string& path : {folder.Write("plain.txt", characters),
                                  folder.Write("packed.txt.gz", test::Gzip(characters))}) {
    const TextFile text = Text(path, 3, 0);
    const auto train = ReadText(text, Split::kTrain);
    REQUIRE(train.ok());
    CHECK(train->size() == 3);
    CHECK(train->features.shape == Shape({3}));
    CHECK(Numbers(train->features) == std::vector<int>{1, 2, 3, 0, 3, 1, 2, 0, 1});
    CHECK(train->labels.shape == Shape({3}));
    CHECK(Numbers(train->labels) == std::vector<int>{2, 3, 0, 3, 1, 2, 0, 1, 2});
    const auto measure = MeasureText(text);
    REQUIRE(measure.ok());
    CHECK(measure->train == 3);
    CHECK(measure->test == 0);
    CHECK(measure->characters == " abc");
    CHECK_THAT(std::string(ReadText(text, Split::kTest).status().message()),
               Contains("data.text.held_out: expected more than 0"));
  }
}

TEST_CASE("characters that the job names keep their numbers, whatever occurs in the text") {
  const TemporaryFolder folder;
  TextFile text = Text(folder.Write("text",
                                    "cab\xff"
                                    "cab"),
                       3, 0);
  text.set_characters(
      "xc\xff"
      "ab");
  CHECK(Numbers(ReadText(text, Split::kTrain)->features) == std::vector<int>{1, 3, 4, 2, 1, 3});
  CHECK(MeasureText(text)->characters == text.characters());
  const auto error_of = [&text](const std::string& characters) {
    text.set_characters(characters);
    const absl::Status status = ReadText(text, Split::kTrain).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(MeasureText(text).status() == status);
    return std::string(status.message());
  };
  CHECK_THAT(error_of("cab"),
             Contains("text: byte 3: expected one of the 3 characters that the model knows "
                      "(data.text.characters), got \"\\xff\". Remedy: "));
  CHECK_THAT(error_of("cab\xff"
                      "c"),
             Contains("data.text.characters: expected each character once, got \"c\" again"));
}

TEST_CASE("The test set is the end of the text, numbered as the whole of it") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("text", "aaaaaaaaaabbbbbbbbbz");
  const auto test = ReadText(Text(path, 4, 0.5f), Split::kTest);
  REQUIRE(test.ok());
  CHECK(Numbers(test->features) == std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(Numbers(test->labels) == std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1});
  const auto train = ReadText(Text(path, 9, 0.5f), Split::kTrain);
  REQUIRE(train.ok());
  CHECK(train->size() == 1);
  CHECK(Numbers(ReadText(Text(path, 9, 0.5f), Split::kTest)->labels).back() == 2);
}

TEST_CASE("Every byte may be a character") {
  const TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 257; ++i) bytes += static_cast<char>(255 - i % 256);
  const auto train = ReadText(Text(folder.Write("bytes", bytes), 256, 0), Split::kTrain);
  REQUIRE(train.ok());
  CHECK(Numbers(train->features).front() == 255);
  CHECK(Numbers(train->features).back() == 0);
}

TEST_CASE("A text that cannot be cut is refused with field and remedy") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("text", "abcdefgh");
  const auto error = [](const TextFile& text) {
    return std::string(MeasureText(text).status().message());
  };
  CHECK(MeasureText(Text(path, 7, 0)).ok());
  CHECK_THAT(error(Text(path, 8, 0)), Contains(path) && Contains("data.text.length: expected at"));
  CHECK_THAT(error(Text(path, 4, 0.5f)), Contains("to train with, got 4 characters. Remedy"));
  CHECK_THAT(error(Text(path, 3, 0.1f)), Contains("to test with, got 0 characters"));
  CHECK_THAT(error(Text(path, -1, 0)), Contains("data.text.length: expected at least 1"));
  CHECK_THAT(error(Text(path, 3, 1)), Contains("data.text.held_out: expected a number from 0"));
  CHECK_THAT(error(Text(path, INT64_MAX, 0)), Contains("at least one sequence"));
  CHECK_THAT(error(Text(folder.Write("empty", ""), 3, 0)), Contains("got 0 characters"));
  CHECK(MeasureText(Text(folder.Path("none"), 3, 0)).status().code() ==
        absl::StatusCode::kNotFound);
}

TEST_CASE("A model must know all characters of its text, and have its length") {
  const TemporaryFolder folder;
  DataDef data;
  *data.mutable_text() = Text(folder.Write("text", "abc cab abc"), 3, 0);
  ExampleSpec spec{Shape({3}), true, 4, {{0, 3, 4}}, 3};
  const auto sizes = MeasureDataset(data, spec);
  REQUIRE(sizes.ok());
  CHECK(sizes->train == 3);
  CHECK(sizes->example_shape == Shape({3}));
  const auto error = [&data](const ExampleSpec& wrong) {
    return std::string(MeasureDataset(data, wrong).status().message());
  };
  ExampleSpec wrong = spec;
  wrong.num_outputs = 3;
  CHECK_THAT(error(wrong), Contains("has 4 different characters, expected at most 3, the classes"));
  wrong = spec;
  wrong.row_indices[0].rows = 2;
  CHECK_THAT(error(wrong), Contains("expected at most 2, the rows of the embedding"));
  wrong = spec;
  wrong.labels_per_example = 1;
  CHECK_THAT(error(wrong), Contains("expected one label for each example, got the shape [3]"));
  wrong = spec;
  wrong.input_shape = Shape({4});
  CHECK_THAT(error(wrong), Contains("examples have the shape [3], the model's input is [4]"));
  data.mutable_csv()->add_train(std::string("x"));
  CHECK_THAT(error(spec), Contains("expected exactly one of idx, csv and text, got several"));
}

TEST_CASE("The text that ships is as its README says") {
  TextFile text;
  text.set_path("deploy/data/text/pentateuch.txt.gz");
  const auto measure = MeasureText(text);
  REQUIRE(measure.ok());
  CHECK(measure->characters.size() == 62);
  CHECK(measure->train == 733591 / 64);
  CHECK(measure->test == 81509 / 64);
}

}  // namespace
}  // namespace lockstep
