#include "common/dataset/csv_reader.h"

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using test::Gzip;
using test::TemporaryFolder;

struct Row {
  std::vector<float> features;
  double label = 0;
  int64_t line = 0;
  bool operator==(const Row&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Row& row) {
  out << "line " << row.line << " label " << row.label << ":";
  for (float x : row.features) out << " " << x;
  return out;
}

absl::StatusOr<std::vector<Row>> ReadAll(const std::string& path, const CsvFormat& format) {
  auto reader = CsvReader::Open(path, format);
  if (!reader.ok()) return reader.status();
  std::vector<Row> rows;
  while (true) {
    const auto found = reader->Next();
    if (!found.ok()) return found.status();
    if (!*found) return rows;
    rows.push_back({reader->features(), reader->label(), reader->line()});
  }
}

TEST_CASE("The label column is found by name and by number, wherever it is") {
  TemporaryFolder folder;
  const std::string path = folder.Write("data.csv", "x,label,y\n1,0,2.5\n-3e-1,1,+4\n");
  for (const char* label : {"label", "1"}) {
    const auto rows = ReadAll(path, {label, true});
    REQUIRE(rows.ok());
    CHECK(*rows == std::vector<Row>{{{1, 2.5}, 0, 2}, {{-0.3f, 4}, 1, 3}});
  }
  const auto first = ReadAll(path, {"x", true});
  REQUIRE(first.ok());
  CHECK(first->back() == Row{{1, 4}, -0.3, 3});
  const auto unlabelled = ReadAll(path, {"", true});
  REQUIRE(unlabelled.ok());
  CHECK(unlabelled->front() == Row{{1, 0, 2.5}, 0, 2});
}

TEST_CASE("A name that is a number is a name before it is a number") {
  TemporaryFolder folder;
  const auto rows = ReadAll(folder.Write("data.csv", "2,1,0\n7,8,9\n"), {"2", true});
  REQUIRE(rows.ok());
  CHECK(rows->front() == Row{{8, 9}, 7, 2});
}

TEST_CASE("Without a header the first line is an example") {
  TemporaryFolder folder;
  const auto rows = ReadAll(folder.Write("data.csv", "1,2,0\n3,4,1"), {"2", false});
  REQUIRE(rows.ok());
  CHECK(*rows == std::vector<Row>{{{1, 2}, 0, 1}, {{3, 4}, 1, 2}});
}

TEST_CASE("RFC 4180 in all its forms gives the same examples") {
  const std::vector<std::string> forms = {
      "x,y,label\n1,2,0\n3,4,1\n",
      "x,y,label\n1,2,0\n3,4,1",
      "x,y,label\r\n1,2,0\r\n3,4,1\r\n",
      "x,y,label\r\n1,2,0\r\n3,4,1\r",
      "\"x\",\"y\",\"label\"\n\"1\",2,\"0\"\n3,\"4\",1\n",
      "\"x\",\"y\",\"label\"\r\n\"1\",\"2\",\"0\"\r\n\"3\",\"4\",\"1\"\r\n",
      "\xef\xbb\xbfx,y,label\n1,2,0\n3,4,1\n",
      "x,y,label\n 1 ,\t2, 0\n3 , 4 ,1 \n",
      "x,y,label\n1.0,2e0,0\n0.3e1,4.,1.0\n",
      Gzip("x,y,label\n1,2,0\n3,4,1\n"),
  };
  TemporaryFolder folder;
  for (const std::string& form : forms) {
    CAPTURE(form);
    const auto rows = ReadAll(folder.Write("data.csv", form), {"label", true});
    INFO(rows.status().ToString());
    REQUIRE(rows.ok());
    CHECK(*rows == std::vector<Row>{{{1, 2}, 0, 2}, {{3, 4}, 1, 3}});
  }
}

TEST_CASE("The largest and the smallest numbers are read") {
  TemporaryFolder folder;
  const auto rows =
      ReadAll(folder.Write("data.csv", "x,y,label\n3.4028234e38,-1e-400,0\n"), {"label", true});
  REQUIRE(rows.ok());
  CHECK(rows->front() == Row{{3.4028234e38f, 0}, 0, 2});
}

TEST_CASE("Lines are counted as an editor counts them") {
  TemporaryFolder folder;
  const auto rows = ReadAll(
      folder.Write("data.csv", "\n\"x\nx\",\"a \"\"label\"\", yes\"\n\n1,2\r\n\r\n3,\"\n4\"\n5,6"),
      {"a \"label\", yes", true});
  INFO(rows.status().ToString());
  REQUIRE(rows.ok());
  CHECK(*rows == std::vector<Row>{{{1}, 2, 5}, {{3}, 4, 7}, {{5}, 6, 9}});
}

TEST_CASE("Records longer than the buffer are read whole") {
  TemporaryFolder folder;
  std::string text = "label";
  for (int i = 0; i < 30000; ++i) text += ",x" + std::to_string(i);
  for (int row = 0; row < 2; ++row) {
    text += "\n" + std::to_string(row);
    for (int i = 0; i < 30000; ++i) text += "," + std::to_string(i + row);
  }
  const auto rows = ReadAll(folder.Write("data.csv", text), {"label", true});
  REQUIRE(rows.ok());
  REQUIRE(rows->size() == 2);
  for (int i = 0; i < 30000; ++i) {
    if (rows->at(1).features[i] != i + 1) FAIL("feature " << i);
  }
}

TEST_CASE("Malformed CSV data are refused with file, line and what was expected") {
  const std::string header = "x,y,label\n";
  struct Case {
    const char* name;
    std::string bytes;
    absl::StatusCode code;
    std::vector<std::string> message;
    CsvFormat format = {"label", true};
  };
  const auto lost = absl::StatusCode::kDataLoss;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const Case cases[] = {
      {"empty", "", lost, {"line 1", "empty file"}},
      {"empty lines alone", "\n\r\n\n", lost, {"line 1", "empty file"}},
      {"byte-order mark alone", "\xef\xbb\xbf", lost, {"empty file"}},
      {"a column too few", header + "1,2,0\n1,2\n", lost, {"line 3", "3 columns, got 2"}},
      {"a column too many", header + "1,2,0,5\n", lost, {"line 2", "3 columns, got 4"}},
      {"a trailing comma", header + "1,2,0,\n", lost, {"line 2", "got 4"}},
      {"decimal commas", header + "1,5,2,5,0\n", lost, {"line 2", "got 5", "a point (1.5)"}},
      {"a quoted decimal comma",
       header + "\"1,5\",2,0\n",
       lost,
       {"line 2", "column \"x\"", "\"1,5\"", "a point (1.5)"}},
      {"semicolons", header + "1;2;0\n", lost, {"line 2", "got 1", "commas"}},
      {"tabs", header + "1\t2\t0\n", lost, {"line 2", "got 1"}},
      {"a word", header + "1,two,0\n", lost, {"line 2", "column \"y\"", "\"two\""}},
      {"a class by name", header + "1,2,cat\n", lost, {"column \"label\"", "classes are 0, 1, 2"}},
      {"an empty field", header + "1,,0\n", lost, {"line 2", "column \"y\"", "\"\""}},
      {"a blank field", header + "1, ,0\n", lost, {"line 2", "column \"y\""}},
      {"NaN", header + "nan,2,0\n", lost, {"line 2", "finite number"}},
      {"infinity", header + "1,-inf,0\n", lost, {"line 2", "finite number"}},
      {"beyond float32", header + "1,1e39,0\n", lost, {"line 2", "\"1e39\""}},
      {"beyond float64", header + "1,1e999,0\n", lost, {"line 2", "\"1e999\""}},
      {"hexadecimal", header + "0x10,2,0\n", lost, {"line 2", "\"0x10\""}},
      {"two signs", header + "+-1,2,0\n", lost, {"line 2", "\"+-1\""}},
      {"a sign alone", header + "-,2,0\n", lost, {"line 2", "\"-\""}},
      {"thousands", header + "1'000,2,0\n", lost, {"line 2", "column \"x\""}},
      {"a unit", header + "1kg,2,0\n", lost, {"line 2", "\"1kg\""}},
      {"a NUL byte", header + std::string("1\0,2,0\n", 7), lost, {"line 2", "\"1\\x00\""}},
      {"a line end inside a number", header + "\"1\n2\",2,0\n", lost, {"line 2", "1\\n2"}},
      {"CR alone as line end", header + "1,2,0\r3,4,1\n", lost, {"line 2", "got 5"}},
      {"binary", header + "\x80\xff,2,0\n", lost, {"line 2", "\\x80\\xff"}},
      {"a quote that is not closed",
       header + "1,2,0\n1,\"2,0\n5,6,1\n",
       lost,
       {"line 3", "closed"}},
      {"a quote at the end", header + "1,2,\"", lost, {"line 2", "not closed"}},
      {"text after a quote", header + "\"1\"2,2,0\n", lost, {"line 2", "text after a closing"}},
      {"CR after a quote", header + "\"1\"\r,2,0\n", lost, {"line 2", "text after a closing"}},
      {"a quote inside a number", header + "1\"\",2,0\n", lost, {"line 2", "\\\"\\\""}},
      {"a very long field",
       header + "1,2," + std::string(200, 'z') + "\n",
       lost,
       {"line 2", "\"" + std::string(40, 'z') + "...\""}},
      {"a record without end", header + std::string((1 << 24) + 10, '1'), lost, {"16 MiB"}},
      {"nothing but commas", header + std::string((1 << 24) + 10, ','), lost, {"16 MiB"}},
      {"a quote over 16 MiB", header + "\"" + std::string((1 << 24) + 10, 'z'), lost, {"16 MiB"}},
      {"UTF-16", std::string("\xff\xfex\0,\0y\0\n\0", 10), invalid, {"no label column"}},
      {"broken gzip", Gzip(header).substr(0, 12), lost, {"middle of its gzip stream"}},
      {"no label column",
       "x,y,z\n1,2,0\n",
       invalid,
       {"no label column \"label\"", "3 columns: \"x\", \"y\", \"z\""}},
      {"another case", "x,Label\n1,2\n", invalid, {"\"x\", \"Label\""}},
      {"a number outside", header, invalid, {"no label column \"3\""}, {"3", true}},
      {"a number beyond 64 bits",
       header,
       invalid,
       {"no label column"},
       {"99999999999999999999", true}},
      {"a negative number", header, invalid, {"no label column \"-1\""}, {"-1", true}},
      {"a name without header",
       "1,2,0\n",
       invalid,
       {"no label column \"label\"", "\"0\", \"1\", \"2\""},
       {"label", false}},
      {"a misspelt name", "x,label\n1,2\n", invalid, {"did you mean \"label\""}, {"lable", true}},
      {"semicolons",
       "x;y;label\n1;2;0\n",
       invalid,
       {"line 1: expected columns separated by commas, got no comma, but \";\""}},
      {"tabs", "x\ty\tlabel\n1\t2\t0\n", invalid, {"line 1: ", "got no comma, but tabs"}},
      {"semicolons and decimal commas",
       "1,5;2,5;0\n1,5;2;1\n",
       lost,
       {"line 1: column \"1\": ", "got \"5;2\"", "separate columns by commas"},
       {"0", false}},
      {"a missing value", "x,label\n,1\n", lost, {"line 2: ", "there are no missing values"}},
      {"two label columns", "label,label\n1,2\n", invalid, {"several columns"}},
      {"a label alone", "label\n1\n", invalid, {"no column beside the label", "is 1 column"}},
      {"an example as header",
       "1.5,2,0\n3.5,4,1\n",
       invalid,
       {"header consists of numbers", "no_header: true"},
       {"2", true}},
      {"whole numbers as header", "0,3,0\n1,2,1\n", invalid, {"no_header: true"}, {"2", true}},
  };
  TemporaryFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string path = folder.Write("data.csv", c.bytes);
    const auto status = ReadAll(path, c.format).status();
    INFO(status.ToString());
    CHECK(status.code() == c.code);
    const std::string message(status.message());
    CHECK_THAT(message, Catch::StartsWith(path + ": "));
    CHECK_THAT(message, Catch::Contains("Remedy: "));
    CHECK_THAT(message, !Catch::Contains("\n"));
    for (const std::string& part : c.message) CHECK_THAT(message, Catch::Contains(part));
  }
}

TEST_CASE("Many columns are not all named") {
  TemporaryFolder folder;
  std::string header = "c0";
  for (int i = 1; i < 1000; ++i) header += ",c" + std::to_string(i);
  const auto status = ReadAll(folder.Write("data.csv", header + "\n"), {"label", true}).status();
  CHECK_THAT(std::string(status.message()), Catch::Contains("1000 columns") &&
                                                Catch::Contains("\"c19\", ...") &&
                                                !Catch::Contains("\"c20\""));
}

TEST_CASE("Any cut of a file gives examples of whole lines or an error") {
  TemporaryFolder folder;
  const std::string text = "x,\"label\"\r\n1,2\r\n\"3\",\"4\"\r\n5,66\r\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    CAPTURE(size);
    const auto rows = ReadAll(folder.Write("data.csv", text.substr(0, size)), {"label", true});
    if (!rows.ok()) continue;
    const std::vector<Row> whole = {{{1}, 2, 2}, {{3}, 4, 3}, {{5}, 66, 4}};
    REQUIRE(rows->size() <= whole.size());
    for (size_t i = 0; i + 1 < rows->size(); ++i) CHECK(rows->at(i) == whole[i]);
  }
}

}  // namespace
}  // namespace lockstep
