// Rules of prose that a program can check, of the documents and of the headers' first lines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <regex>
#include <sstream>

#include "tests/layering/source_tree.h"

namespace lockstep::layering {
namespace {

constexpr int kMostColumns = 120;

int Columns(const std::string& line) {
  const auto begins_character = [](char byte) { return (byte & 0xC0) != 0x80; };
  return static_cast<int>(std::count_if(line.begin(), line.end(), begins_character));
}

TEST_CASE("prose is wrapped") {
  int num_lines = 0;
  int num_violations = 0;
  for (const Source& source : ReadSources({"docs", "deploy", "tests"}, {".md"})) {
    std::istringstream lines(source.text);
    bool is_code = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const size_t begin = line.find_first_not_of(' ');
      if (begin == std::string::npos) continue;
      if (line.compare(begin, 3, "```") == 0) is_code = !is_code;
      // Rows of a table and messages that are quoted stay on a line.
      if (is_code || line[begin] == '|') continue;
      ++num_lines;
      if (Columns(line) <= kMostColumns) continue;
      std::cerr << source.path << ":" << number << ": at most " << kMostColumns << " columns\n";
      ++num_violations;
    }
  }
  CHECK(num_lines > 1000);
  CHECK(num_violations == 0);
}

// A noun clause makes the reader wait for the subject.
TEST_CASE("a header opens with its subject") {
  const std::regex noun_clause("// (What|Whether|Who|Whose|How|Where|When|Which|Why) ");
  const auto headers =
      ReadSources({"chief", "common", "deploy", "ps", "tests", "worker"}, {".h", ".cuh"});
  CHECK(headers.size() > 500);
  for (const Source& header : headers) {
    CAPTURE(header.path);
    CHECK_FALSE(std::regex_search(header.text.begin(), header.text.end(), noun_clause,
                                  std::regex_constants::match_continuous));
  }
}

}  // namespace
}  // namespace lockstep::layering
